package real

import (
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
	"aether.internal/test/xds"
)

// Fact 10 across pods: the generation goes on, a gauge holds the old pod's value
// while that lives, and of a counter only what was counted since its last flush
// travels.
func TestFact10StatsTravelAcrossPods(t *testing.T) {
	const flush, rate = time.Second, 100
	a := newStage(t)
	a.writeFlushing(flush)
	a.start("--parent-shutdown-time", "1h", "--watch-config=false")
	streams := []*stream{a.stream(), a.stream(), a.stream()}
	a.loadWith(load.Plan{Target: a.Target(), Kinds: []load.KindPlan{{Kind: load.New, Rate: rate}}})
	a.until("a few flushes", func() bool { return a.stats()[statRequests] > 6*rate })
	b := a.pod("b")
	b.writeFlushing(flush)
	b.launch("--parent-shutdown-time", "1h")
	before := a.lastOf(1)
	b.await("epoch 1 to serve", node.Serves(1))
	b.until("the old pod's gauge to have come over", func() bool { return b.stats()[statHeld] == 3 })
	streams = append(streams, b.stream())
	b.until("its own to be added", func() bool { return b.stats()[statHeld] == 4 })
	for _, st := range streams[:3] {
		st.conn.Close()
	}
	b.await("the old pod's epoch to end", node.Alone(1))
	b.until("the old pod's gauge to be taken back", func() bool { return b.stats()[statHeld] == 1 })
	if got := b.stats()[statGeneration]; got != 2 {
		t.Errorf("generation %d of the second epoch", got)
	}
	report := a.unharmed()
	b.residual(int64(report.Started()), before[statRequests], b.settled(statRequests, flush), int64(3*rate*flush/time.Second))
	b.flows(streams[3])
	streams[3].conn.Close()
	a.stop()
	b.stop()
	b.nothingLeft()
}

// Two Envoys of one node id at the control plane, and the newcomer's lacks what
// the old pod's has: it is not committed before it is there.
func TestRule2ANewPodIsComparedWithTheOldOnesEpoch(t *testing.T) {
	p := newPlane(t, 2*time.Second)
	p.begin("--watch-config=false")
	p.set(p.fewer())
	b := p.pod("b")
	b.launch("--parent-shutdown-time", aMinute)
	b.logs("waiting for the newcomer to be complete")
	b.logs(xds.Name(2))
	b.marker("before it is complete", false)
	p.await("the old pod to serve on, contested", state("contested"))
	p.set(p.healthy)
	b.await("epoch 1 to serve", node.Serves(1))
	for i, r := range p.dynamic {
		report := r.Stop()
		if report.Failures() > 0 {
			t.Errorf("dynamic listener %d: %s", i, report.Table())
		}
	}
	p.dynamic = nil
	p.unharmed()
	p.stop()
	b.stop()
	b.leftOnly("xds.sock") // the test's
}
