package hotrestart

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

func TestTailKeepsTheNewestLines(t *testing.T) {
	var out bytes.Buffer
	tl := newTail(slog.New(slog.NewJSONHandler(&out, nil)), 7)
	var in strings.Builder
	for i := range tailLines + 50 {
		fmt.Fprintf(&in, "line %d\n", i)
	}
	in.WriteString(strings.Repeat("x", 3*lineBytes) + "\nno newline at the end")
	tl.read(io.NopCloser(strings.NewReader(in.String())))
	tl.settle()
	lines := tl.lines()
	if len(lines) != tailLines || lines[len(lines)-1] != "no newline at the end" || len(lines[len(lines)-3]) != lineBytes {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
	if got := out.String(); strings.Count(got, `"epoch":7`) < tailLines || !strings.Contains(got, `"source":"envoy"`) {
		t.Errorf("lines are not attributed to their epoch:\n%.300s", got)
	}
}

// blocked is a log whose output nobody reads until it is opened.
type blocked struct {
	slog.Handler
	open chan struct{}
}

func (b *blocked) Handle(ctx context.Context, r slog.Record) error {
	<-b.open
	return b.Handler.Handle(ctx, r)
}

// Fact 22: an Envoy whose output nobody reads stops serving, so its stderr is
// read whatever happens to ours, and what is lost is counted.
func TestFact22ABlockedOutputDropsAndCountsLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		gate := &blocked{slog.NewTextHandler(&out, nil), make(chan struct{})}
		p := newPrinter(slog.New(gate))
		for i := range 1000 {
			p.print(fmt.Sprint("line ", i)) // never blocks
		}
		close(gate.open)
		synctest.Wait() // the queue has been printed
		p.print("after")
		p.close(1)
		synctest.Wait()
		got := out.String()
		printed := strings.Count(got, "line ")
		if !strings.Contains(got, fmt.Sprintf("%d lines were dropped", 1000-printed)) || !strings.Contains(got, "after") {
			t.Errorf("%d lines printed; the end is %s", printed, got[max(0, len(got)-300):])
		}
	})
}
