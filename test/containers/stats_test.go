package containers

import (
	"testing"
	"time"

	"aether.internal/test/containers/actor"
	"aether.internal/test/load"
	observe "aether.internal/test/node"
)

const (
	statRequests = "http.http.downstream_rq_total"  // counter
	statHeld     = "cluster.raw.upstream_cx_active" // gauge
	statMembers  = "cluster.raw.membership_total"   // gauge that isn't added up
	statActive   = "listener_manager.total_listeners_active"
	flush, rate  = time.Second, 100
)

// Fact 10 across pods, with numbers. A gauge is the old pod's and the new pod's
// together while the old one's Envoy lives, and the new one's own afterwards. Of
// a counter what the old pod has counted since its last flush travels, and stays.
func TestFact10StatsMergeAcrossPods(t *testing.T) {
	n := newNode(t)
	a, b := n.pod("a"), n.pod("b")
	for _, p := range []*pod{a, b} {
		p.more = "stats_flush_interval: " + flush.String() + "\n"
		p.write(p.name)
	}
	a.serves(0, "--parent-shutdown-time", "1h")
	n.hold("old", 3)
	n.load(actor.Load{Name: "steady", Plan: load.Plan{Target: n.bootstrap.Target(), Kinds: []load.KindPlan{{Kind: load.New, Rate: rate}}}})
	n.until("a few flushes", func() bool { return n.stats(statRequests)[statRequests] > 6*rate })
	c := n.counts()
	b.serves(1, "--parent-shutdown-time", "1h")
	n.generation(1, 2)
	n.until("the old pod's gauge to have come over", func() bool { return n.stats(statHeld)[statHeld] == 3 })
	n.hold("new", 2)
	n.until("both pods' gauges to be added up", func() bool { return n.stats(statHeld)[statHeld] == 5 })
	n.notAddedUp()
	passed := n.stats(statRequests)[statRequests]
	n.until("three flushes with both alive", func() bool { return n.stats(statRequests)[statRequests] > passed+3*rate })

	n.letGo("old", 0)
	b.await("the old pod's epoch to end", observe.Alone(1))
	n.until("only its own to be left in the new pod's gauge", func() bool { return n.stats(statHeld)[statHeld] == 2 })
	n.notAddedUp()
	passed = n.stats(statRequests)[statRequests]
	n.until("three more flushes", func() bool { return n.stats(statRequests)[statRequests] > passed+3*rate })
	c.judge(n.unharmed("steady").Started())
	n.generation(1, 2)
	if got := n.stats(statHeld)[statHeld]; got != 2 {
		t.Errorf("%s is %d in the end, want the new pod's 2", statHeld, got)
	}
	n.letGo("new", 0)
	a.stop()
	b.stop()
}

// notAddedUp judges gauges that say how many of a thing there are.
func (n *node) notAddedUp() {
	n.Helper()
	own := n.stats(statMembers, statActive)
	if own[statMembers] != 1 || own[statActive] != 4 {
		n.Errorf("what says how many there are was added up: %v", own)
	}
}

// counts watches one counter as a monitoring system does, through whichever
// Envoy has the admin.
type counts struct {
	*node
	end, ended chan struct{}
	points     []point
}

// point is the counter's growth since the first look. A counter that has fallen
// began anew: all that it shows is growth.
type point struct {
	at           time.Time
	value, grown int64
	generation   int64
}

func (n *node) counts() *counts {
	c := &counts{node: n, end: make(chan struct{}), ended: make(chan struct{})}
	go c.look() // joined by judge
	return c
}

func (c *counts) look() {
	defer close(c.ended)
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for {
		select {
		case <-c.end:
			return
		case <-beat.C:
		}
		now := c.stats(statRequests, statGeneration)
		value, told := now[statRequests]
		if !told {
			continue // the admin is changing hands
		}
		p := point{time.Now(), value, 0, now[statGeneration]}
		if len(c.points) > 0 {
			last := c.points[len(c.points)-1]
			p.grown = last.grown + value - last.value
			if value < last.value {
				p.grown = last.grown + value
			}
		}
		c.points = append(c.points, p)
	}
}

// judge wants the rate over any four seconds to be what the clients' is, to one
// flush in either direction, and the sum to be right to as much.
func (c *counts) judge(started int) {
	c.Helper()
	close(c.end)
	<-c.ended
	const window = 4 * time.Second
	least, most := 1e9, 0.0
	j := 0
	for _, p := range c.points {
		for p.at.Sub(c.points[j+1].at) >= window {
			j++
		}
		if span := p.at.Sub(c.points[j].at); span >= window {
			got := float64(p.grown-c.points[j].grown) / span.Seconds()
			least, most = min(least, got), max(most, got)
		}
	}
	first, last := c.points[0], c.points[len(c.points)-1]
	var before point
	for _, p := range c.points {
		if p.generation == first.generation {
			before = p
		}
	}
	residual := int64(started) - before.value - last.value
	c.Logf("%d requests: the old pod counted %d when last asked, the new one %d; residual %d. Rate over any %v: %.0f to %.0f per second (the clients': %d)",
		started, before.value, last.value, residual, window, least, most, rate)
	oneFlush := int64(rate * flush / time.Second)
	if residual > 3*oneFlush || residual < -3*oneFlush {
		c.Errorf("residual %d, want at most a flush's %d, or three on a busy machine", residual, oneFlush)
	}
	if last.value >= int64(started) {
		c.Errorf("all that the old pod ever counted has travelled: %d of %d", last.value, started)
	}
	if slack := float64(2*oneFlush) / window.Seconds(); least < rate-slack || most > rate+slack {
		c.Errorf("rate %.0f to %.0f, want %d to within %.0f", least, most, rate, slack)
	}
}
