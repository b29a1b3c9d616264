package gate

import (
	"bufio"
	"context"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAReaderStopsAndLosesNothing(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	g, lines, ended := New(r), make(chan string), make(chan struct{})
	go func() { // joined below
		defer close(ended)
		for in := bufio.NewReader(r); ; {
			line, _, err := in.ReadLine()
			if g.Wait(err) {
				continue
			}
			if err != nil {
				return
			}
			lines <- string(line)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for range 100 {
		if !g.Shut(ctx) {
			t.Fatal("it does not stop")
		}
		if _, err := w.WriteString("a\n"); err != nil {
			t.Fatal(err)
		}
		select {
		case line := <-lines:
			t.Fatal("read while shut: ", line)
		default:
		}
		g.Open()
		if line := <-lines; line != "a" {
			t.Fatal(line)
		}
	}
	// One that is busy may not be stopped in time, and goes on all the same.
	if _, err := w.WriteString("b\nc\n"); err != nil {
		t.Fatal(err)
	}
	short, over := context.WithTimeout(ctx, 20*time.Millisecond)
	defer over()
	g.Shut(short) // or not
	g.Open()
	for _, want := range []string{"b", "c"} {
		if line := <-lines; line != want {
			t.Error(line)
		}
	}
	if !g.Shut(ctx) {
		t.Error("it does not stop")
	}
	g.Close() // it need not be open to end
	<-ended
	r.Close()
	w.Close()
}
