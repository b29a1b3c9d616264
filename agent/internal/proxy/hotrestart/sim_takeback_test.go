package hotrestart

import (
	"slices"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// takeBack removes a newcomer, as takeback.go does → Removed.
func (s *simShell) takeBack(c *simChild, hasty bool) {
	c.hasty = c.hasty || hasty
	if c.removing {
		return // asked again, to hurry
	}
	c.removing, c.over = true, true
	until := s.w.now + min(2*s.w.limits.Drain, s.w.limits.Parent)
	if s.state.Stage != Running {
		until = s.w.now + s.w.limits.Drain
	}
	s.afterLaunch(c, func() { s.empty(c, until) })
}

func (s *simShell) afterLaunch(c *simChild, do func()) {
	if c.launched {
		s.ours(0, do)
	} else {
		c.whenLaunched = append(c.whenLaunched, do)
	}
}

// empty closes the listeners of a newcomer that accepts and waits for its
// connections. A silent one is killed at once.
func (s *simShell) empty(c *simChild, until time.Duration) {
	if c.relay == nil && c.parent >= 0 {
		c.mayCut = true // plain: if it is LIVE, it is so since a moment ago
	}
	if c.proc == nil || c.mayCut || !c.live && c.parent >= 0 {
		s.remove(c)
		return
	}
	s.askAdmin(c, func(p *simEnvoy) {
		if p != c.proc {
			c.mayCut = true // rule 7: a silent admin
			s.remove(c)
			return
		}
		p.open = 0
		p.drain()
		s.awaitEmpty(c, until, 0, &simPause{10 * time.Millisecond, 100 * time.Millisecond})
	})
}

func (s *simShell) awaitEmpty(c *simChild, until time.Duration, zeros int, b *simPause) {
	c.mayCut = c.hasty || s.w.now >= until
	if zeros == 2 || c.mayCut || !c.proc.alive {
		s.remove(c)
		return
	}
	s.ours(b.next(), func() {
		if len(c.proc.left()) == 0 {
			zeros++
		} else {
			zeros = 0
		}
		s.awaitEmpty(c, until, zeros, b)
	})
}

// remove kills, repairs the segment and tells.
func (s *simShell) remove(c *simChild) {
	gone := func() {
		if k := &s.w.kernel; c.parent >= 0 && k.holder[c.epoch%envoy.Seats] == nil && k.at(c.epoch) == nil {
			s.clearFlag(c.epoch, c.follows) // else somebody else's newcomer is on its way
		}
		took := c.tookAdmin || c.relay == nil && c.parent >= 0 && c.proc != nil
		s.report(c, Removed{Epoch: c.epoch, TookAdmin: took}, nil)
	}
	if c.proc == nil {
		gone()
		return
	}
	c.mayCut = c.mayCut || c.proc.stopped
	c.proc.signal(syscall.SIGKILL)
	s.w.kernel.onExit(c.proc, gone)
}

// clearFlag clears what a newcomer has left of the segment's (fact 2). Its seat
// is in our hands.
func (s *simShell) clearFlag(epoch int, parent *simEnvoy) {
	if !s.w.kernel.segment.flag || s.w.noRepair || s.newcomerBut(epoch, parent) {
		return
	}
	if p := s.w.kernel.initializing(); p != nil {
		s.w.rules.broke("fact 2: repaired only while nobody initialises", "%s does", p.name())
	}
	s.w.kernel.segment.flag = false
	s.w.tell(s.name, "clears the segment's flag")
}

// drainAll is the drained stop → Drained.
func (s *simShell) drainAll(until time.Duration) {
	var all []*simChild
	for _, c := range s.children {
		all = append(all, c)
	}
	newest := slices.MaxFunc(all, func(a, b *simChild) int { return a.epoch - b.epoch })
	s.askAdmin(newest, func(p *simEnvoy) {
		if p == newest.proc && p != nil && p.step == stepLive {
			p.drain() // healthcheck/fail, and graceful&skip_exit: it still accepts
		} else {
			newest.asParent.say(envoy.DrainListeners) // by its own socket (fact 6)
		}
		s.awaitDrained(all, until, 0, &simPause{10 * time.Millisecond, 250 * time.Millisecond})
	})
}

func (s *simShell) awaitDrained(all []*simChild, until time.Duration, zeros int, b *simPause) {
	open := 0
	for _, c := range all {
		if c.proc.alive {
			open += len(c.proc.left())
		}
	}
	switch {
	case open > 0:
		zeros = 0
	case zeros == 1:
		s.post(Drained{}, nil)
		return
	default:
		zeros++
	}
	s.ours(b.next(), func() {
		if s.w.now < until {
			s.awaitDrained(all, until, zeros, b)
		}
	})
}
