package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aether.internal/test/collector"
	"aether.internal/test/node"
)

// idleness is what runs when nothing happens.
type idleness struct {
	Supervised side `json:"supervised"`
	ByHand     side `json:"by_hand"`
	// Pushing pushes metrics to a collector. WithParent has an old epoch that
	// drains as well, so that each stats flush goes through the relay; its
	// likeness by hand has the same.
	Pushing          side `json:"with_telemetry"`
	WithParent       side `json:"with_a_parent"`
	ByHandWithParent side `json:"by_hand_with_a_parent"`

	AtStart memory `json:"supervisor_at_start"`
	After   memory `json:"supervisor_after_all_handoffs"`
}

// side is a supervisor and the Envoy that serves, or that one alone. CPU is in
// milliseconds a second; wake-ups are voluntary context switches a second.
type side struct {
	Supervisor float64 `json:"supervisor_ms_per_s"`
	Wakeups    float64 `json:"supervisor_wakeups_per_s"`
	Envoy      float64 `json:"envoy_ms_per_s"`
	Memory     memory  `json:"supervisor_memory"`

	supervisor, envoy int // pids
}

// all is what supervision costs: our own CPU, and what it adds to Envoy's.
func (i idleness) all() float64 {
	return i.Supervised.Supervisor + max(0, i.Supervised.Envoy-i.ByHand.Envoy)
}

// flush is what a stats flush costs with a parent, in ms: ours, and the difference
// that the relay makes to the Envoy that serves.
func (i idleness) flush() (supervisor, envoy float64) {
	const period = 5 // s, Envoy's default
	return (i.WithParent.Supervisor - i.Supervised.Supervisor) * period, (i.WithParent.Envoy - i.ByHandWithParent.Envoy) * period
}

// calmDown is until a supervisor that has just handed over looks at nothing but
// what it always does.
const calmDown = 15 * time.Second

func (s *setup) measureIdle(ctx context.Context) (idleness, error) {
	i := idleness{AtStart: s.memoryAtStart, After: memoryOf(s.always.pid())}
	more, err := s.openIdle(ctx)
	if err != nil {
		return i, err
	}
	defer more.close()
	i.Supervised.supervisor, i.Supervised.envoy = s.always.pid(), s.always.envoy
	i.ByHand.envoy = s.hand.pid()
	i.Pushing.supervisor, i.Pushing.envoy = more.pushing.pid(), more.pushing.envoy
	i.WithParent.supervisor, i.WithParent.envoy = more.relaying.pid(), more.relaying.envoy
	i.ByHandWithParent.envoy = more.hand.pid()
	fmt.Fprintf(os.Stderr, "idle for %v\n", calmDown+s.idle)
	if err := pause(ctx, calmDown); err != nil {
		return i, err
	}
	sides := []*side{&i.Supervised, &i.ByHand, &i.Pushing, &i.WithParent, &i.ByHandWithParent}
	return i, watchIdle(ctx, s.idle, sides)
}

func watchIdle(ctx context.Context, d time.Duration, sides []*side) error {
	began := time.Now()
	var errs []error
	look := func(sign float64) {
		for _, x := range sides {
			errs = append(errs, x.add(sign))
		}
	}
	look(-1)
	if err := pause(ctx, d); err != nil {
		return err
	}
	look(1)
	seconds := time.Since(began).Seconds()
	for _, x := range sides {
		x.Supervisor, x.Wakeups, x.Envoy = x.Supervisor/seconds, x.Wakeups/seconds, x.Envoy/seconds
	}
	return errors.Join(errs...)
}

// add counts what has been used so far, or takes it off.
func (x *side) add(sign float64) error {
	envoy, err := cpuOf(x.envoy)
	x.Envoy += sign * milliseconds(envoy)
	if x.supervisor == 0 || err != nil {
		return err
	}
	ours, err := cpuOf(x.supervisor)
	x.Supervisor += sign * milliseconds(ours)
	x.Wakeups += sign * float64(wakeups(x.supervisor))
	x.Memory = memoryOf(x.supervisor)
	return err
}

// wakeups is how often the threads of a process have waited so far.
func wakeups(pid int) (n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, task := range tasks {
		for line := range strings.Lines(fileText(task)) {
			if value, ok := strings.CutPrefix(line, "voluntary_ctxt_switches:"); ok {
				one, _ := strconv.Atoi(strings.TrimSpace(value))
				n += one
			}
		}
	}
	return n
}

// idlers are the sides that are there for idleness only.
type idlers struct {
	collector         *collector.Collector
	pushing, relaying *supervised
	hand              *hand
	streams           []net.Conn
}

func (s *setup) openIdle(ctx context.Context) (i *idlers, err error) {
	i = &idlers{}
	defer func() {
		if err != nil {
			i.close()
		}
	}()
	for range 3 {
		if err := s.addNode(ctx); err != nil {
			return i, err
		}
	}
	nodes := s.nodes[len(s.nodes)-3:]
	if i.collector, err = collector.Start(); err != nil {
		return i, err
	}
	if i.pushing, err = startSupervised(ctx, nodes[0], s.poll, "always", "--otlp-endpoint", i.collector.Endpoint); err != nil {
		return i, err
	}
	if _, err = i.pushing.hup(ctx); err != nil { // which tells the pid of its Envoy
		return i, err
	}
	if i.relaying, err = startSupervised(ctx, nodes[1], s.poll, "always", "--parent-shutdown-time", "3600s"); err != nil {
		return i, err
	}
	i.hand = &hand{node: nodes[2], poll: s.poll, keepsParent: true}
	if _, err = i.hand.start(ctx, false); err != nil {
		return i, err
	}
	for _, n := range nodes[1:] {
		if err = i.hold(n); err != nil {
			return i, err
		}
	}
	if _, err = i.hand.start(ctx, false); err != nil {
		return i, err
	}
	return i, i.relaying.handoffKeepingParent(ctx)
}

// hold keeps an epoch alive by a connection.
func (i *idlers) hold(n *node.Node) error {
	conn, err := net.DialTimeout("tcp", n.Target().TCP, time.Second)
	if err != nil {
		return err
	}
	i.streams = append(i.streams, conn)
	_, err = conn.Write([]byte("p"))
	if err == nil {
		_, err = conn.Read(make([]byte, 1)) // accepted, and through
	}
	return err
}

func (s *supervised) handoffKeepingParent(ctx context.Context) error {
	if err := s.run.Signal(unix.SIGHUP); err != nil {
		return err
	}
	s.epoch++
	started, err := s.await(ctx, "newcomer started", s.epoch)
	if err != nil {
		return err
	}
	s.envoy = pidIn(started.Raw)
	_, err = s.await(ctx, "epoch serves", s.epoch)
	return err
}

func (i *idlers) close() {
	for _, conn := range i.streams {
		conn.Close()
	}
	for _, s := range []*supervised{i.pushing, i.relaying} {
		if s != nil {
			s.close(context.Background())
		}
	}
	if i.hand != nil {
		i.hand.close() // its parent ends with it
	}
	if i.collector != nil {
		i.collector.Close()
	}
}
