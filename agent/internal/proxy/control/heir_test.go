package control

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"
)

// served runs s until the returned function is called.
func served(t *testing.T, s *Server, sup Supervisor) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, sup, slog.New(slog.DiscardHandler)) }() // joined by stop
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestWhoComesDuringAPauseIsAnsweredAfterIt(t *testing.T) {
	path := socketPath(t)
	s, err := Listen(path)
	must(t, err)
	stop := served(t, s, fake{})
	c := client(t, path)
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		files, resume, err := s.Pause(ctx)
		must(t, err)
		if files.Listener <= 0 || files.Lock <= 0 {
			t.Errorf("%+v", files)
		}
		answered := make(chan error, 1)
		go func() { // joined below
			_, err := c.Status(ctx)
			answered <- err
		}()
		select {
		case err := <-answered:
			t.Errorf("answered during the pause: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		resume()
		must(t, <-answered)
		cancel()
	}
	stop()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}

func TestAnotherServerGoesOnWithTheSocket(t *testing.T) {
	path := socketPath(t)
	s, err := Listen(path)
	must(t, err)
	stop := served(t, s, fake{})
	files, resume, err := s.Pause(t.Context())
	must(t, err)
	dup := func(fd int) *os.File {
		n, err := syscall.Dup(fd)
		must(t, err)
		return os.NewFile(uintptr(n), "handed over")
	}
	listener := dup(files.Listener)
	heir, err := Inherit(path, dup(files.Lock), listener)
	must(t, err)
	must(t, listener.Close())
	end := served(t, heir, fake{})
	if st, err := client(t, path).Status(t.Context()); err != nil || st.PID != os.Getpid() {
		t.Errorf("%+v, %v", st, err)
	}
	end()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the heir leaves the socket: %v", err)
	}
	resume()
	stop()
}

func TestAPauseOfAServerThatEnds(t *testing.T) {
	s, err := Listen(socketPath(t))
	must(t, err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, resume, err := s.Pause(ctx); err == nil {
		t.Error("nobody serves, and it pauses")
	} else {
		resume()
	}
	// A stop during the pause is a stop.
	path := socketPath(t)
	s2, err := Listen(path)
	must(t, err)
	stop := served(t, s2, fake{})
	if _, _, err := s2.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left: %v", err)
	}
}
