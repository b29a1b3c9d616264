// Package real drives the built agent binary and a real Envoy under load. Each
// rule and each measured fact of the design has a test of that name.
package real

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

func TestMain(m *testing.M) {
	code := m.Run()
	node.RemoveAgent()
	os.Exit(code)
}

// stage is a node with a supervisor, and the load that runs through it. Every
// failure prints the supervisor's log.
type stage struct {
	*testing.T
	*node.Node
	run  *node.Run
	load *load.Runner
	ctx  context.Context
}

// patience bounds every wait: generous, because order and outcome are judged
// here and never time.
const patience = 60 * time.Second

// newStage makes a node with the default Envoy; nothing runs yet.
func newStage(t *testing.T) *stage { return newStageWith(t, "") }

func newStageWith(t *testing.T, version string) *stage {
	t.Helper()
	n, err := node.New(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, Node: n, ctx: t.Context()}
	t.Cleanup(func() {
		if s.load != nil {
			s.load.Stop()
		}
		if s.run != nil {
			s.run.Kill()
			if t.Failed() {
				t.Logf("supervisor's log:\n%s", s.run.Log())
			}
		}
		n.Close()
		os.Remove(n.Segment())
	})
	return s
}

// start starts the supervisor and waits for its first epoch.
func (s *stage) start(args ...string) {
	s.Helper()
	s.launch(args...)
	s.await("epoch 0 to serve", node.Serves(0))
}

// launch starts the supervisor and waits for nothing.
func (s *stage) launch(args ...string) {
	s.Helper()
	var err error
	if s.run, err = s.Start(s.ctx, args...); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) await(what string, want func(node.Status) bool) node.Status {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	st, err := s.run.Await(ctx, what, want)
	if err != nil {
		s.Fatal(err)
	}
	return st
}

func (s *stage) status() node.Status {
	s.Helper()
	st, err := s.run.Status(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	return st
}

func (s *stage) write(tag string) {
	s.Helper()
	if err := s.Write(tag); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) hup() { s.signal(syscall.SIGHUP) }

func (s *stage) signal(sig syscall.Signal) {
	s.Helper()
	if err := s.run.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

// exit waits for the supervisor's end and judges its exit code.
func (s *stage) exit(want int) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	code, err := s.run.ExitCode(ctx)
	if err != nil { // its goroutines go to the log
		s.signal(syscall.SIGQUIT)
		<-s.run.Done()
	}
	if err != nil || code != want {
		s.Errorf("exit code %d (%v), want %d", code, err, want)
	}
}

// stop ends the supervisor the ordinary way.
func (s *stage) stop() {
	s.Helper()
	s.signal(syscall.SIGTERM)
	s.exit(0)
}

// mixed starts the default mixed load; every stream lasts the given time.
func (s *stage) mixed(streams time.Duration) {
	s.Helper()
	plan := load.DefaultPlan(s.Target())
	plan.StreamDuration = streams
	s.loadWith(plan)
}

func (s *stage) loadWith(plan load.Plan) {
	s.Helper()
	if plan.Timeout == 0 { // a machine with much else to do is not a failure
		plan.Timeout = patience / 2
	}
	var err error
	if s.load, err = load.Start(s.ctx, plan); err != nil {
		s.Fatal(err)
	}
}

// unharmed stops the load and fails the test for anything that was refused,
// reset, cut or timed out.
func (s *stage) unharmed() load.Report {
	s.Helper()
	report := s.load.Stop()
	s.load = nil
	if report.OK() == 0 || report.Failures() > 0 {
		s.Errorf("the load was harmed: %d failures of %d\n%s", report.Failures(), report.Started(), report.Table())
		for _, e := range report.Errors {
			s.Logf("%s (tls %t) at %v, %s: %s", e.Kind, e.TLS, e.Offset, e.Heading, e.Message)
		}
	} else {
		s.Logf("%d operations, 0 failures, %d permitted retries", report.OK(), report.Retried())
	}
	return report
}
