package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"

	"aether.internal/test/node"
)

// concurrency is the same for all sides.
var concurrency = strconv.Itoa(runtime.NumCPU())

// sample is one restart.
type sample struct {
	Started    time.Duration // from the trigger to Envoy's fork
	Live       time.Duration // to a LIVE answer at the new epoch
	Committed  time.Duration // to the supervisor's own word
	ParentGone time.Duration
	Supervisor time.Duration // its CPU
	Envoy      time.Duration // the new Envoy's CPU until its parent is gone
}

// setup is the three sides: by hand, and a supervisor that validates and one
// that doesn't, each a node of its own with the same bootstrap.
type setup struct {
	options
	nodes         []*node.Node
	stateDirs     []string
	hand          *hand
	never, always *supervised
	memoryAtStart memory
}

func openSetup(ctx context.Context, o options) (s *setup, err error) {
	s = &setup{options: o}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for range 3 {
		if err := s.addNode(ctx); err != nil {
			return s, err
		}
	}
	s.hand = &hand{node: s.nodes[0], poll: o.poll}
	if _, err := s.hand.start(ctx, false); err != nil {
		return s, err
	}
	if s.never, err = startSupervised(ctx, s.nodes[1], o.poll, "never"); err != nil {
		return s, err
	}
	if s.always, err = startSupervised(ctx, s.nodes[2], o.poll, "always"); err != nil {
		return s, err
	}
	s.memoryAtStart = memoryOf(s.always.pid())
	return s, nil
}

// addNode makes a node whose state directory is on a tmpfs, as /run is: to
// create a file on a disk takes up to a millisecond.
func (s *setup) addNode(ctx context.Context) error {
	n, err := node.New(ctx, s.envoy)
	if err != nil {
		return err
	}
	s.nodes = append(s.nodes, n)
	if n.StateDir, err = os.MkdirTemp("/dev/shm", "ab"); err != nil {
		return err
	}
	s.stateDirs = append(s.stateDirs, n.StateDir)
	return ownBinary(n.EnvoyPath)
}

// ownBinary makes path a copy instead of a link: whoever links the same file
// elsewhere changes its ctime, and then a supervisor must hash it again.
func ownBinary(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o755)
}

func (s *setup) close() {
	for _, sup := range []*supervised{s.never, s.always} {
		if sup != nil {
			sup.close(context.Background())
		}
	}
	if s.hand != nil {
		s.hand.close()
	}
	for _, n := range s.nodes {
		n.Close()
		os.Remove(n.Segment())
	}
	for _, dir := range s.stateDirs {
		os.RemoveAll(dir)
	}
	node.RemoveAgent()
}

// way is one way to restart Envoy.
type way string

const (
	byHand          way = "by hand"
	byHandValidated way = "validate, then start, by hand"
	hup             way = "SIGHUP"
	hupValidated    way = "SIGHUP, validated"
	rename          way = "config change"
	renameValidated way = "config change, validated"
)

type step struct {
	way way
	do  func(context.Context) (sample, error)
}

// steps are one round: all ways in turn, so that what slows the machine down
// slows all of them.
func (s *setup) steps() []step {
	return []step{
		{byHand, func(ctx context.Context) (sample, error) { return s.hand.start(ctx, false) }},
		{hup, s.never.hup}, {hupValidated, s.always.hup},
		{byHandValidated, func(ctx context.Context) (sample, error) { return s.hand.start(ctx, true) }},
		{rename, s.never.rename}, {renameValidated, s.always.rename},
	}
}

// measure runs the rounds; the samples of a way are in the order of the rounds.
func (s *setup) measure(ctx context.Context) (map[way][]sample, error) {
	all := map[way][]sample{}
	for round := range s.warmup + s.rounds {
		fmt.Fprintf(os.Stderr, "\rround %d of %d ", round+1, s.warmup+s.rounds)
		for _, step := range s.steps() {
			one, err := step.do(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", step.way, round+1, err)
			}
			if round >= s.warmup {
				all[step.way] = append(all[step.way], one)
			}
		}
	}
	fmt.Fprintln(os.Stderr)
	return all, nil
}
