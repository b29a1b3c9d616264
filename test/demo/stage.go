package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// stage is where the story happens: a node, its supervisor and the load.
type stage struct {
	*node.Node
	envoys envoys
	plan   func(load.Target) load.Plan
	pace   time.Duration // the unit of time in which the story lets one watch

	run  *node.Run
	load *load.Runner
	rest chan struct{}     // closed when the load has ended
	tags map[string]string // a bootstrap's SHA-256 → its tag

	seen struct {
		sight
		lines  int       // of the log that have been read
		loadAt time.Time // when the load was asked
	}
}

// newStage furnishes a node with the older Envoy.
func newStage(ctx context.Context, e envoys, plan func(load.Target) load.Plan, pace time.Duration) (*stage, error) {
	n, err := node.New(ctx, "")
	if err != nil {
		return nil, err
	}
	for used(n) { // by somebody whose process had our id, and maybe another user's
		n.BaseID++
	}
	s := &stage{Node: n, envoys: e, plan: plan, pace: pace, tags: map[string]string{}}
	s.seen.status.Serving = -1
	if err := e.installOld(n.EnvoyPath); err != nil {
		n.Close()
		return nil, err
	}
	return s, nil
}

// shared are the files of a base-id that outlive its processes.
func shared(n *node.Node) []string {
	seats, _ := filepath.Glob(fmt.Sprintf("/dev/shm/aether_%d.seat.*", n.BaseID))
	if _, err := os.Lstat(n.Segment()); err == nil {
		seats = append(seats, n.Segment())
	}
	return seats
}

func used(n *node.Node) bool { return len(shared(n)) > 0 }

// close ends what is left and removes everything. The load goes first: an
// Envoy without connections is drained at once.
func (s *stage) close() {
	if s.load != nil {
		s.load.Stop() // abandons nothing, unless the context has ended
	}
	if s.rest != nil {
		<-s.rest
	}
	if s.run != nil {
		s.end()
	}
	s.Close()
	// Lock files stay by design, for the next supervisor of the same base-id;
	// ours has been for this run alone.
	for _, path := range shared(s.Node) {
		_ = os.Remove(path)
	}
}

// grace is how long a supervisor without connections may take to end.
const grace = 10 * time.Second

// end ends a supervisor that the story has left running.
func (s *stage) end() {
	_ = s.run.Signal(syscall.SIGTERM) // fails when it has ended
	select {
	case <-s.run.Done():
	case <-time.After(grace):
		s.run.Kill()
	}
}
