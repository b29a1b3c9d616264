package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
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
	s := &stage{Node: n, envoys: e, plan: plan, pace: pace, tags: map[string]string{}}
	if err := node.Install(e.old.path, n.EnvoyPath); err != nil {
		n.Close()
		return nil, err
	}
	return s, nil
}

// start starts the supervisor. Its Envoys may live three streams long after
// they are replaced.
func (s *stage) start(ctx context.Context, _ look) error {
	if err := s.tagged("v1"); err != nil {
		return err
	}
	limit := max(3*s.plan(s.Target()).StreamDuration, 3*time.Second)
	run, err := s.Start(ctx, "--parent-shutdown-time", limit.String())
	if err == nil {
		s.run = run
	}
	return err
}

func (s *stage) startLoad(ctx context.Context, _ look) error {
	var err error
	s.load, err = load.Start(ctx, s.plan(s.Target()))
	return err
}

// write changes the bootstrap, by rename, as an editor or a ConfigMap would.
func (s *stage) write(tag string) func(context.Context, look) error {
	return func(context.Context, look) error { return s.tagged(tag) }
}

func (s *stage) tagged(tag string) error {
	s.Bootstrap.EpochTag = tag
	data, err := s.Bootstrap.YAML()
	if err != nil {
		return err
	}
	return s.place(data, tag)
}

// place puts a bootstrap in place and remembers what it is called.
func (s *stage) place(data []byte, tag string) error {
	sum := sha256.Sum256(data)
	s.tags[hex.EncodeToString(sum[:])] = tag
	return s.WriteRaw(data)
}

// writeMany writes bootstraps tagged "tag.1" to "tag.n".
func (s *stage) writeMany(tag string, n int) func(context.Context, look) error {
	return func(_ context.Context, look look) error {
		for i := range n {
			if err := s.tagged(fmt.Sprintf("%s.%d", tag, i+1)); err != nil {
				return err
			}
			if err := look(burstInterval); err != nil {
				return err
			}
		}
		return nil
	}
}

// writeBroken writes a bootstrap with a misspelt field.
func (s *stage) writeBroken(context.Context, look) error {
	data, err := s.Bootstrap.YAML()
	if err != nil {
		return err
	}
	broken := bytes.Replace(data, []byte("listeners:"), []byte("listners:"), 1)
	if bytes.Equal(broken, data) {
		return errors.New("the bootstrap has no listeners to misspell")
	}
	return s.place(broken, "broken")
}

// writeTaken writes a bootstrap that asks for the port of our own upstream:
// Envoy's validation can't see that it is taken (fact 5).
func (s *stage) writeTaken(context.Context, look) error {
	_, port, err := net.SplitHostPort(s.Upstream.TCP)
	if err != nil {
		return err
	}
	o := s.Bootstrap
	if _, err := fmt.Sscan(port, &o.TCP); err != nil {
		return err
	}
	data, err := o.YAML()
	if err != nil {
		return err
	}
	return s.place(data, "port taken")
}

func (s *stage) swapBinary(context.Context, look) error { return s.envoys.install(s.EnvoyPath) }

func (s *stage) hup(context.Context, look) error { return s.run.Signal(syscall.SIGHUP) }

func (s *stage) terminate(context.Context, look) error { return s.run.Signal(syscall.SIGTERM) }

// stopLoad starts no more operations; those under way may end.
func (s *stage) stopLoad(context.Context, look) error {
	s.rest = make(chan struct{})
	// Ends with the last operation, at the latest at its deadline; close joins it.
	go func() {
		defer close(s.rest)
		s.load.Stop()
	}()
	return nil
}

// close ends what is left, in haste, and removes everything.
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
	seats, _ := filepath.Glob(fmt.Sprintf("/dev/shm/aether_%d.seat.*", s.BaseID))
	for _, path := range append(seats, s.Segment()) {
		_ = os.Remove(path)
	}
}

// grace is how long a supervisor that is told to skip all waiting may take.
const grace = 10 * time.Second

// end ends a supervisor that the story has left running.
func (s *stage) end() {
	_ = s.run.Signal(syscall.SIGTERM)
	_ = s.run.Signal(syscall.SIGTERM) // the second one skips the drain
	select {
	case <-s.run.Done():
	case <-time.After(grace):
		s.run.Kill()
	}
}

// see looks at the supervisor's status and log, and at the load.
func (s *stage) see(ctx context.Context) sight {
	now := &s.seen.sight
	now.at = time.Now()
	if s.run == nil {
		return *now
	}
	s.seeLog()
	s.seeLoad()
	select {
	case <-s.run.Done():
		code, err := s.run.ExitCode(ctx)
		now.ended, now.code = err == nil, code
		now.status.Epochs = nil
		return *now
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if st, err := s.run.Status(ctx); err == nil {
		now.status, now.tag = st, ""
		if e := st.Of(st.Serving); e != nil {
			now.tag = s.tags[e.ConfigHash]
		}
	}
	return *now
}

func (s *stage) seeLog() {
	lines := s.run.Lines()
	for _, l := range lines[s.seen.lines:] {
		switch {
		case l.Source != "":
		case strings.HasPrefix(l.Message, saysRefused):
			s.seen.log.refused++
		case strings.HasPrefix(l.Message, saysTakenBack):
			s.seen.log.takenBack++
		case strings.HasPrefix(l.Message, saysUnchanged):
			s.seen.log.unchanged++
		}
	}
	s.seen.lines = len(lines)
}

// loadGlance is how often the load is asked: its answer is the whole timeline.
const loadGlance = 100 * time.Millisecond

func (s *stage) seeLoad() {
	if s.load == nil {
		return
	}
	select {
	case <-s.rest: // nil, and never ready, until the load is being stopped
		s.seen.loadEnded = true
	default:
		if time.Since(s.seen.loadAt) < loadGlance {
			return
		}
	}
	r := s.load.Snapshot()
	s.seen.loadAt, s.seen.done, s.seen.failed, s.seen.rate = time.Now(), r.OK(), r.Failures(), lastSecond(r)
}

// lastSecond is the rate over the last whole second of the timeline.
func lastSecond(r load.Report) float64 {
	now, count := r.Duration.Milliseconds(), 0
	var first, last int64 = -1, 0
	for _, b := range r.Timeline {
		if b.OffsetMS >= now-1000-width.Milliseconds() && b.OffsetMS+width.Milliseconds() <= now {
			if first < 0 {
				first = b.OffsetMS
			}
			last = b.OffsetMS + width.Milliseconds()
			count += b.OK + b.Failed
		}
	}
	if first < 0 {
		return 0
	}
	return float64(count) * 1000 / float64(last-first)
}
