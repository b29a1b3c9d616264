package main

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/process"
)

// patient is a supervisor whose reloads never end by themselves.
type patient struct {
	control.Supervisor // what nobody asks here
	reloads            chan context.Context
}

func (patient) Status(context.Context) (control.Status, error) {
	return control.Status{State: control.Serving, Serving: 3}, nil
}

func (p patient) Reload(ctx context.Context, _ control.ReloadRequest) (control.ReloadResult, error) {
	p.reloads <- ctx
	<-ctx.Done()
	return control.ReloadResult{}, ctx.Err()
}

func servePatient(t *testing.T) (patient, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	server, err := control.Listen(filepath.Join(dir, "c.sock"))
	if err != nil {
		t.Fatal(err)
	}
	p := patient{reloads: make(chan context.Context, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, p, slog.New(slog.DiscardHandler)) }() // joined by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return p, server.Path()
}

// start runs the agent until the test signals it; what it says can be read.
func start(t *testing.T, args ...string) (*process.Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := process.Start(process.Spec{
		Path: os.Args[0], Args: args, Stdout: w, Stderr: w, Env: append(os.Environ(), beAgent+"=1"),
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Signal(syscall.SIGKILL)
		p.Wait()
		r.Close()
	})
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return p, bufio.NewReader(r)
}

func TestCtrlCIsHowAWatchEnds(t *testing.T) {
	_, socket := servePatient(t)
	p, out := start(t, "proxyctl", "status", "--watch", "--control-socket", socket)
	if line, err := out.ReadString('\n'); !strings.Contains(line, "epoch 3 serves") {
		t.Fatal(line, err)
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(out)
	if st := p.Wait(); err != nil || st.Code != 0 || strings.Contains(string(rest), "epoch") {
		t.Errorf("%v, %v: %s", st, err, rest)
	}
}

// Who stops waiting doesn't stop the reload, and is told so.
func TestCtrlCEndsTheWaitForAReload(t *testing.T) {
	sup, socket := servePatient(t)
	p, out := start(t, "proxyctl", "reload", "--wait", "--control-socket", socket)
	waiting := <-sup.reloads
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(out)
	if st := p.Wait(); err != nil || st.Code != 1 || !strings.Contains(string(said), "interrupted; the reload goes on") {
		t.Errorf("%v, %v: %s", st, err, said)
	}
	<-waiting.Done() // the supervisor notices
}
