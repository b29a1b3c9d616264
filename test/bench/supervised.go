package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"aether.internal/test/node"
)

// supervised is a supervisor whose handoffs are timed. What it says of itself
// is read from its log: to ask its control socket would cost it CPU.
type supervised struct {
	node  *node.Node
	run   *node.Run
	poll  time.Duration
	epoch int // that serves
	edits int
	lines chan node.Line
	envoy int // pid of the newest
}

func startSupervised(ctx context.Context, n *node.Node, poll time.Duration, validate string, more ...string) (*supervised, error) {
	s := &supervised{node: n, poll: poll, lines: make(chan node.Line, 1000)}
	s.run = &node.Run{Node: n, OnLine: s.notice}
	// Limits as by hand; they don't matter for idle parents, which end at once.
	args := []string{"--validate", validate, "--concurrency", concurrency, "--drain-time", "1s", "--parent-shutdown-time", "2s"}
	err := s.run.Start(ctx, append(args, more...)...)
	if err != nil {
		return nil, err
	}
	if err := awaitLive(ctx, n.Bootstrap.Admin, 0, poll); err != nil {
		s.close(ctx)
		return nil, fmt.Errorf("supervised: %w\n%s", err, s.run.Log())
	}
	_, err = s.await(ctx, "epoch serves", 0)
	return s, err // its Envoy's pid is known with the first handoff
}

// notice keeps the lines a handoff waits for.
func (s *supervised) notice(l node.Line) {
	if l.Source == "" {
		s.lines <- l
	}
}

// hup is one handoff by SIGHUP: the same input again.
func (s *supervised) hup(ctx context.Context) (sample, error) {
	return s.handoff(ctx, func() error { return s.run.Signal(syscall.SIGHUP) })
}

// rename is one handoff by a new bootstrap that is renamed into place.
func (s *supervised) rename(ctx context.Context) (sample, error) {
	s.edits++
	s.node.Bootstrap.EpochTag = "edit-" + strconv.Itoa(s.edits%2) // as long each time
	data, err := s.node.Bootstrap.YAML()
	if err != nil {
		return sample{}, err
	}
	tmp := s.node.ConfigPath + ".tmp"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return sample{}, err
	}
	return s.handoff(ctx, func() error { return os.Rename(tmp, s.node.ConfigPath) })
}

func (s *supervised) handoff(ctx context.Context, trigger func() error) (out sample, err error) {
	before, err := settledCPU(ctx, s.pid())
	if err != nil {
		return out, err
	}
	began := time.Now()
	if err := trigger(); err != nil {
		return out, err
	}
	s.epoch++
	if err := awaitLive(ctx, s.node.Bootstrap.Admin, s.epoch, s.poll); err != nil {
		return out, fmt.Errorf("supervised: %w\n%s", err, s.run.Log())
	}
	out.Live = time.Since(began)
	started, err := s.await(ctx, "newcomer started", s.epoch)
	if err != nil {
		return out, err
	}
	out.Started, s.envoy = started.Time.Sub(began), pidIn(started.Raw)
	serves, err := s.await(ctx, "epoch serves", s.epoch)
	if err != nil {
		return out, err
	}
	out.Committed = serves.Time.Sub(began)
	ended, err := s.await(ctx, "old epoch has ended", s.epoch-1)
	if err != nil {
		return out, err
	}
	out.ParentGone = ended.Time.Sub(began)
	after, err := settledCPU(ctx, s.pid())
	if err != nil {
		return out, err
	}
	out.Supervisor = after - before
	out.Envoy, err = settledCPU(ctx, s.envoy)
	return out, err
}

// await reads the log up to the line of that message and epoch.
func (s *supervised) await(ctx context.Context, message string, epoch int) (node.Line, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		select {
		case l := <-s.lines:
			if l.Message == message && l.Epoch == epoch {
				return l, nil
			}
		case <-s.run.Done():
			return node.Line{}, fmt.Errorf("the supervisor has ended:\n%s", s.run.Log())
		case <-ctx.Done():
			return node.Line{}, fmt.Errorf("no %q of epoch %d in the supervisor's log: %w\n%s", message, epoch, context.Cause(ctx), s.run.Log())
		}
	}
}

func pidIn(raw string) int {
	var in struct{ PID int }
	_ = json.Unmarshal([]byte(raw), &in)
	return in.PID
}

func (s *supervised) pid() int { return s.run.Cmd.Process.Pid }

func (s *supervised) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = s.run.Signal(syscall.SIGTERM)
	if _, err := s.run.ExitCode(ctx); err != nil {
		s.run.Kill()
	}
}
