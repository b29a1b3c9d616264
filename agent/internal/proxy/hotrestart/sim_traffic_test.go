package hotrestart

import (
	"math/rand/v2"
	"slices"
	"time"
)

// connection is one client's, with one Envoy until its end.
type connection struct {
	born, ends time.Duration // by itself
	every      time.Duration // between two answers; 0: it is one long stream
	share      float64       // of the drain time, after which it is told to go
}

// closes is when it ends if nobody cuts it. A client goes only on an answer
// that tells it to (fact 14), a stream when it is done.
func (c connection) closes(p *simEnvoy) time.Duration {
	if !p.draining || c.every == 0 {
		return c.ends
	}
	told := max(p.drainFrom+time.Duration(c.share*float64(p.drainTime)), c.born)
	answers := (told - c.born + c.every - 1) / c.every
	return min(c.ends, c.born+answers*c.every)
}

// left are the connections that are open now.
func (p *simEnvoy) left() []connection {
	p.conns = slices.DeleteFunc(p.conns, func(c connection) bool { return c.closes(p) <= p.w.now })
	return p.conns
}

// clients come all the time.
type clients struct {
	w    *world
	rng  *rand.Rand
	rare bool // the end of a run needs fewer
}

// arrive is one new connection, and the next one later.
func (c *clients) arrive() {
	if c.rng == nil {
		c.rng = dice(c.w.seed, 2)
	}
	c.connect(c.kind())
	pause := time.Duration(c.rng.ExpFloat64() * float64(500*time.Millisecond))
	if c.rare {
		pause *= 20
	}
	c.w.after(pause+time.Millisecond, c.arrive)
}

// connect takes any listener that is promised, and lands with anyone who
// accepts there.
func (c *clients) connect(n connection) {
	for _, at := range []listeners{1, 2, 4} {
		if c.w.rules.promised&at == 0 || c.rng.IntN(2) == 0 {
			continue
		}
		who := c.w.kernel.accepting(at)
		if len(who) > 0 {
			p := who[c.rng.IntN(len(who))]
			p.conns = append(p.conns, n)
		}
		return
	}
}

func (c *clients) kind() connection {
	seconds := func(a, b float64) time.Duration {
		return time.Duration((a + (b-a)*c.rng.Float64()) * float64(time.Second))
	}
	n := connection{born: c.w.now, share: c.rng.Float64()}
	switch k := c.rng.IntN(10); {
	case k < 6: // one request
		n.ends = n.born + seconds(0.005, 0.3)
	case k < 9: // kept alive
		n.ends, n.every = n.born+seconds(1, 200), seconds(0.05, 5)
	default:
		n.ends = n.born + seconds(5, 150)
	}
	return n
}

// stream is one that stays for long.
func (c *clients) stream(d time.Duration) {
	c.w.tell("client", "opens a stream of %s", d)
	c.connect(connection{born: c.w.now, ends: c.w.now + d})
}

// mood is how a control plane behaves.
type mood int

const (
	planeGood     mood = iota
	planeSilent        // or dead
	planeRejected      // Envoy rejects what it says
)

func (m mood) String() string {
	return [...]string{"answers", "is silent", "says what Envoy rejects"}[m]
}

// plane is the control plane of every Envoy that has one.
type plane struct {
	w    *world
	mood mood
}

func (c *plane) become(m mood) {
	c.mood = m
	c.w.tell("plane", "%s", m)
	for _, p := range slices.Clone(c.w.kernel.procs) {
		p.fetch()
	}
}
