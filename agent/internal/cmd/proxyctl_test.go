package cmd

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// supervisor is a control.Supervisor that says what it was told to say.
type supervisor struct {
	st    control.Status
	res   control.ReloadResult
	err   error
	hangs bool

	drain     control.DrainResult
	history   control.History
	upgrade   control.UpgradeResult
	diagnosis control.Diagnosis

	asked chan control.ReloadRequest
}

func (s *supervisor) Status(context.Context) (control.Status, error) { return s.st, s.err }

func (s *supervisor) Drain(_ context.Context, out bool) (control.DrainResult, error) {
	s.drain.Drained = out
	return s.drain, s.err
}

func (s *supervisor) History(context.Context) (control.History, error) { return s.history, s.err }

func (s *supervisor) Upgrade(context.Context, control.UpgradeRequest) (control.UpgradeResult, error) {
	return s.upgrade, s.err
}

func (s *supervisor) Doctor(context.Context) (control.Diagnosis, error) { return s.diagnosis, s.err }

func (s *supervisor) SetLog(_ context.Context, level control.LogLevel) (control.LogLevel, error) {
	if level.Level == "" {
		return control.LogLevel{Level: "info"}, s.err
	}
	return level, s.err
}

func (s *supervisor) Reload(ctx context.Context, req control.ReloadRequest) (control.ReloadResult, error) {
	s.asked <- req
	if s.hangs {
		<-ctx.Done()
		return control.ReloadResult{}, ctx.Err()
	}
	return s.res, s.err
}

// serve puts s behind a control socket until the test ends.
func serve(t *testing.T, s *supervisor) (socket string) {
	t.Helper()
	s.asked = make(chan control.ReloadRequest, 1)
	dir, err := os.MkdirTemp("", "ctl")
	if err != nil {
		t.Fatal(err)
	}
	server, err := control.Listen(filepath.Join(dir, "c.sock"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, s, slog.New(slog.DiscardHandler)) }() // joined by the cleanup
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return server.Path()
}

func TestReload(t *testing.T) {
	handoff := &control.HandoffStatus{From: 4, To: 5, Milliseconds: control.StepTimes{Prepare: 50, Live: 80.2, Verify: 3}}
	took := 133600 * time.Microsecond
	for _, c := range []struct {
		name     string
		args     string
		sup      supervisor
		code     int
		req      control.ReloadRequest
		out, err string
	}{
		{name: "on its way", sup: supervisor{res: control.ReloadResult{Outcome: control.Accepted}},
			out: "accepted; see: agent proxyctl status\n"},
		{name: "committed", args: "--wait --force", req: control.ReloadRequest{Wait: true, Force: true},
			sup: supervisor{res: control.ReloadResult{Outcome: control.Committed, Epoch: 5, Duration: took}, st: control.Status{LastHandoff: handoff}},
			out: "committed: epoch 5 serves after 134ms (prepare 50.0 ms + live 80.2 ms + verify 3.0 ms = 133.2 ms)\n"},
		{name: "committed, and another since", args: "--wait", req: control.ReloadRequest{Wait: true},
			sup: supervisor{res: control.ReloadResult{Outcome: control.Committed, Epoch: 4, Duration: took}, st: control.Status{LastHandoff: handoff}},
			out: "committed: epoch 4 serves after 134ms\n"},
		{name: "nothing to do", args: "--wait", req: control.ReloadRequest{Wait: true},
			sup: supervisor{res: control.ReloadResult{Outcome: control.Unchanged, Epoch: 4}},
			out: "unchanged: epoch 4 has this input already\n"},
		{name: "refused", args: "--wait", req: control.ReloadRequest{Wait: true}, code: 1,
			sup: supervisor{res: control.ReloadResult{Outcome: control.Refused, Epoch: 5, Error: "bootstrap /c: no such field: listenerz", Log: []string{"critical: a", "info: b"}}},
			err: "log of epoch 5:\n| critical: a\n| info: b\nagent proxyctl reload: refused: bootstrap /c: no such field: listenerz\n"},
		{name: "failed", args: "--wait", req: control.ReloadRequest{Wait: true}, code: 1,
			sup: supervisor{res: control.ReloadResult{Outcome: control.Failed, Epoch: 5, Error: "epoch 5: listener a is missing", Duration: took}},
			err: "agent proxyctl reload: failed after 134ms: epoch 5: listener a is missing\n"},
		{name: "out of patience", args: "--wait --timeout 50ms", req: control.ReloadRequest{Wait: true}, code: 1,
			sup: supervisor{hangs: true},
			err: "agent proxyctl reload: not done after 50ms; the reload goes on, see: agent proxyctl status\n"},
		{name: "no reload at all", sup: supervisor{err: errors.New("the supervisor is stopping")}, code: 1,
			err: "agent proxyctl reload: the supervisor is stopping\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.env["AETHER_CONTROL_SOCKET"] = serve(t, &c.sup)
			w.env["AETHER_FORCE"] = "true" // must not count
			code := w.main(append([]string{"proxyctl", "reload"}, strings.Fields(c.args)...))
			if code != c.code || w.out.String() != c.out || w.err.String() != c.err {
				t.Errorf("exit code %d\nout: %s\nerr: %s", code, w.out.String(), w.err.String())
			}
			if req := <-c.sup.asked; req != c.req {
				t.Errorf("asked for %+v", req)
			}
		})
	}
}

func TestStatusOverTheSocket(t *testing.T) {
	socket := serve(t, &supervisor{st: control.Status{State: control.Serving, Serving: 3, Ready: true}})
	w := newWorld()
	if code := w.main([]string{"proxyctl", "status", "--control-socket", socket}); code != 0 || !strings.Contains(w.out.String(), "serving, epoch 3 serves, ready") {
		t.Error(code, w.out.String(), w.err.String())
	}
	w = newWorld()
	if code := w.main([]string{"proxyctl", "--control-socket", socket, "status", "-o", "json"}); code != 0 || !strings.Contains(w.out.String(), `"serving": 3,`) {
		t.Error(code, w.out.String(), w.err.String())
	}
}

func TestNoSupervisorIsCode7(t *testing.T) {
	for _, args := range []string{"status", "status --watch", "reload", "reload --wait", "drain", "undrain", "history", "doctor", "log"} {
		w := newWorld()
		socket := filepath.Join(t.TempDir(), "s")
		code := w.main(append([]string{"proxyctl", "--control-socket", socket}, strings.Fields(args)...))
		if code != ExitNoSupervisor || !strings.Contains(w.err.String(), "no supervisor answers at "+socket+": there is no such socket\n") {
			t.Errorf("%s: %d %s", args, code, w.err.String())
		}
	}
}
