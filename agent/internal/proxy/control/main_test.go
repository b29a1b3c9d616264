package control

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a Supervisor of two functions; nil ones answer nothing much.
type fake struct {
	status func(context.Context) (Status, error)
	reload func(context.Context, ReloadRequest) (ReloadResult, error)
}

func (f fake) Status(ctx context.Context) (Status, error) {
	if f.status == nil {
		return Status{PID: os.Getpid(), Serving: None}, nil
	}
	return f.status(ctx)
}

func (f fake) Drain(_ context.Context, out bool) (DrainResult, error) {
	return DrainResult{Drained: out, Epoch: 3, Told: true}, nil
}

func (f fake) Upgrade(_ context.Context, req UpgradeRequest) (UpgradeResult, error) {
	if req.Check {
		return UpgradeResult{Outcome: Unchanged, To: "2"}, nil
	}
	return UpgradeResult{Outcome: Accepted, To: "2"}, nil
}

func (f fake) History(context.Context) (History, error) {
	return History{Handoffs: []TryStatus{{HandoffStatus: HandoffStatus{From: 1, To: 2}, Outcome: Committed}}}, nil
}

func (f fake) Doctor(context.Context) (Diagnosis, error) {
	return Diagnosis{}, errors.New("the owner doesn't answer")
}

func (f fake) SetLog(_ context.Context, level LogLevel) (LogLevel, error) {
	if level.Level == "loud" {
		return level, errors.New("no such level")
	}
	return LogLevel{cmp.Or(level.Level, "info")}, nil
}

func (f fake) Reload(ctx context.Context, req ReloadRequest) (ReloadResult, error) {
	if f.reload == nil {
		return ReloadResult{Outcome: Accepted}, nil
	}
	return f.reload(ctx, req)
}

// socketPath is short enough for a socket, whatever the test is called.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "control.sock")
}

func listen(t *testing.T, path string) *Server {
	t.Helper()
	s, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// serve runs a server until the test ends or stop is called, which returns
// what Serve returned.
func serve(t *testing.T, sup Supervisor) (path string, stop func() error) {
	t.Helper()
	path = socketPath(t)
	s := listen(t, path)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, sup, slog.New(slog.DiscardHandler)) }() // joined by stop
	var result error
	stopped := false
	stop = func() error {
		cancel()
		if !stopped {
			stopped = true
			result = <-done
		}
		return result
	}
	t.Cleanup(func() { _ = stop() })
	return path, stop
}

func client(t *testing.T, path string) *Client {
	t.Helper()
	c := Dial(path)
	t.Cleanup(c.Close)
	return c
}

// soon fails the test when ch says nothing within a generous time.
func soon[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: nothing after 10s", what)
		panic("unreachable")
	}
}
