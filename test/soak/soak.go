package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// patience bounds every wait; what is judged is that it ends well.
const patience = 2 * time.Minute

// Streams, drain time and limit are short, so that a parent is idle soon and
// the next handoff needn't wait for it.
const streams = 200 * time.Millisecond

var supervisorArgs = []string{"--drain-time", "1s", "--parent-shutdown-time", "10s"}

// soaking is one run.
type soaking struct {
	options
	*report
	node *node.Node
	run  *node.Run
	load *load.Runner
	tell io.Writer

	bootstraps int // written so far; no two are the same
}

// soak runs all of it. The report is nil only when nothing could be measured.
func soak(ctx context.Context, o options, tell io.Writer) (*report, error) {
	n, err := node.New(ctx, o.envoy)
	if err != nil {
		return nil, err
	}
	s := &soaking{options: o, report: newReport(o), node: n, tell: tell}
	defer s.close()
	if s.Young, err = s.young(ctx); err != nil {
		return nil, fmt.Errorf("a young supervisor's goroutines: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	if s.load, err = load.Start(ctx, plan(n.Target(), o.rate)); err != nil {
		return nil, err
	}
	begin := time.Now()
	err = s.handoffs(ctx)
	s.Seconds = time.Since(begin).Seconds()
	s.Load = s.load.Stop()
	if err == nil {
		err = s.finish(ctx)
	}
	s.Complaints = complaints(s.run.Lines())
	s.Verdicts, s.judgeError = judgeAll(s.Samples)
	s.log = s.run.Log()
	return s.report, err
}

func (s *soaking) close() {
	if s.load != nil {
		s.load.Stop()
	}
	if s.run != nil {
		s.run.Kill()
	}
	s.node.Close()
	os.Remove(s.node.Segment())
	for seat := range 3 {
		os.Remove(fmt.Sprintf("/dev/shm/aether_%d.seat.%d", s.node.BaseID, seat))
	}
}

func (s *soaking) start(ctx context.Context) (err error) {
	if s.run, err = s.node.Start(ctx, supervisorArgs...); err != nil {
		return err
	}
	_, err = s.await(ctx, "epoch 0 to serve alone", node.Alone(0))
	return err
}

func (s *soaking) await(ctx context.Context, what string, want func(node.Status) bool) (node.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.run.Await(ctx, what, want)
}

// young is the goroutines of a supervisor after its first handoff: what an old
// one is compared with.
func (s *soaking) young(ctx context.Context) (int, error) {
	if err := s.start(ctx); err != nil {
		return 0, err
	}
	if err := s.handoff(ctx, 1); err != nil {
		return 0, err
	}
	if _, err := s.await(ctx, "epoch 1 to be alone", node.Alone(1)); err != nil {
		return 0, err
	}
	return s.goroutines(ctx)
}

// goroutines ends the supervisor with SIGQUIT, at which the Go runtime prints
// them all. Nothing else of a finished binary would tell.
func (s *soaking) goroutines(ctx context.Context) (int, error) {
	if err := s.run.Signal(syscall.SIGQUIT); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if _, err := s.run.ExitCode(ctx); err != nil {
		return 0, err
	}
	n := countGoroutines(s.run.Lines())
	if n == 0 {
		return 0, errors.New("SIGQUIT printed no goroutine")
	}
	return n, nil
}

// handoffs makes them all, and a sample now and then.
func (s *soaking) handoffs(ctx context.Context) error {
	for epoch := 1; epoch <= s.options.handoffs; epoch++ {
		if err := s.handoff(ctx, epoch); err != nil {
			return err
		}
		s.Handoffs = epoch
		if epoch%s.every != 0 {
			continue
		}
		if err := s.sample(ctx, epoch); err != nil {
			return err
		}
	}
	return nil
}

// handoff makes one, by turns with a changed bootstrap and with a signal. An
// epoch that is too high is a handoff that nobody asked for.
func (s *soaking) handoff(ctx context.Context, epoch int) error {
	trigger := func() error { return s.run.Signal(syscall.SIGHUP) }
	if epoch%2 == 1 {
		s.bootstraps++
		trigger = func() error { return s.node.Write(fmt.Sprintf("bootstrap %d", s.bootstraps)) }
	}
	if err := trigger(); err != nil {
		return err
	}
	st, err := s.await(ctx, fmt.Sprintf("epoch %d to serve", epoch), func(st node.Status) bool { return st.Serving >= epoch && st.Ready })
	switch {
	case err != nil:
		return err
	case st.Serving > epoch:
		return fmt.Errorf("epoch %d serves where %d was asked for", st.Serving, epoch)
	case st.LastFailure != nil:
		return fmt.Errorf("a handoff failed: epoch %d, %s: %s", st.LastFailure.Epoch, st.LastFailure.Step, st.LastFailure.Error)
	}
	return nil
}

// sample waits for the newest epoch to be alone, so that samples compare.
func (s *soaking) sample(ctx context.Context, epoch int) error {
	st, err := s.await(ctx, fmt.Sprintf("epoch %d to be alone", epoch), node.Alone(epoch))
	if err != nil {
		return err
	}
	one, err := takeSample(s.node, s.run.Cmd.Process.Pid, st)
	if err != nil {
		return fmt.Errorf("sample after %d handoffs: %w", epoch, err)
	}
	one.Failures = s.load.Snapshot().Failures()
	s.Samples = append(s.Samples, one)
	if epoch%(10*s.every) == 0 {
		fmt.Fprintf(s.tell, "%5d handoffs: supervisor %d KiB, %d descriptors, %d threads; Envoy %d KiB; %d failures\n", epoch,
			one.Supervisor.RSS, one.Supervisor.Descriptors, one.Supervisor.Threads, one.Envoy.RSS, one.Failures)
	}
	return nil
}

// finish waits for the last parent and asks for the goroutines.
func (s *soaking) finish(ctx context.Context) (err error) {
	if _, err = s.await(ctx, "the last epoch to be alone", node.Alone(s.Handoffs)); err != nil {
		return err
	}
	s.Old, err = s.goroutines(ctx)
	return err
}
