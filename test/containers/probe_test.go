package containers

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	observe "aether.internal/test/node"
)

// A readiness probe's period and failure threshold, shorter than anybody's.
const (
	probePeriod    = time.Second
	probeThreshold = 2
)

// The new pod's Envoy crashes and is started again: the marker is gone for a
// moment, which is shorter than the probe takes to believe it.
func TestAShortReadinessFlapIsAbsorbedByTheProbe(t *testing.T) {
	n := newNode(t)
	a, b := n.pod("a"), n.pod("b")
	a.serves(0)
	n.hold("old", 1) // its parent lives: a crash costs a start, not the container
	b.serves(1)
	a.await("the old pod to be superseded", state("superseded"))
	seen := b.observed()
	for range 3 {
		st := b.await("it to serve", observe.Serves(1))
		n.must(syscall.Kill(b.processes("envoy")[0], syscall.SIGKILL))
		b.await("it to serve again", func(now observe.Status) bool {
			return observe.Serves(1)(now) && now.Of(1).PID != st.Of(1).PID
		})
		n.until("a probe to find it", seen.next())
	}
	seen.over()
	t.Logf("the marker was gone %d times, at most for %v; %d of %d probes passed", seen.flaps, seen.longest, seen.passed.Load(), seen.probes.Load())
	if seen.flaps < 3 {
		t.Errorf("the marker was gone %d times in three crashes", seen.flaps)
	}
	if seen.unready {
		t.Errorf("%d probes in a row failed: the pod was unready", probeThreshold)
	}
	n.letGo("old", 0)
	a.stop()
	b.stop()
}

// readiness is what is seen of a pod's.
type readiness struct {
	*pod
	probes, passed atomic.Int64
	unready        bool // as many failures in a row as the threshold
	flaps          int
	longest        time.Duration

	end    chan struct{}
	actors sync.WaitGroup
}

// observed does what the kubelet does, and looks at the marker as well.
func (p *pod) observed() *readiness {
	r := &readiness{pod: p, end: make(chan struct{})}
	r.actors.Go(r.probe)
	r.actors.Go(r.watch)
	return r
}

func (r *readiness) over() {
	close(r.end)
	r.actors.Wait()
}

// next is true after one more probe that passed.
func (r *readiness) next() func() bool {
	before := r.passed.Load()
	return func() bool { return r.passed.Load() > before }
}

func (r *readiness) probe() {
	beat := time.NewTicker(probePeriod)
	defer beat.Stop()
	for failed := 0; ; {
		code, _, err := r.container.Exec(r.Context(), []string{probePath, markerPath})
		r.probes.Add(1)
		if err == nil && code == 0 {
			r.passed.Add(1)
			failed = 0
		} else {
			failed++
			r.unready = r.unready || failed >= probeThreshold
		}
		select {
		case <-beat.C:
		case <-r.end:
			return
		}
	}
}

func (r *readiness) watch() {
	beat := time.NewTicker(2 * time.Millisecond)
	defer beat.Stop()
	var gone time.Time
	for {
		_, err := os.Lstat(filepath.Join(r.dir, "run", "ready"))
		switch {
		case err != nil && gone.IsZero():
			gone = time.Now()
			r.flaps++
		case err == nil && !gone.IsZero():
			r.longest = max(r.longest, time.Since(gone).Round(time.Millisecond))
			gone = time.Time{}
		}
		select {
		case <-beat.C:
		case <-r.end:
			return
		}
	}
}
