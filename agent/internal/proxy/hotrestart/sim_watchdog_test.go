package hotrestart

import "time"

// This file guards against a serving epoch that hangs, as watchdog.go does.

// guard looks at the serving epoch's admin over a kept connection.
func (s *simShell) guard(c *simChild) {
	s.guarded = c
	kept, silent := true, false
	var look func()
	look = func() {
		if s.guarded != c || c.over {
			return
		}
		s.ready(c, kept, s.w.now+guardTime, func(ok bool) {
			kept = ok
			if ok != silent {
				s.w.ours(guardPeriod, look)
				return
			}
			silent = !ok
			s.post(Silenced{Epoch: c.epoch, Ends: ok}, func() { s.w.ours(guardPeriod, look) })
		})
	}
	s.w.ours(guardPeriod, look)
}

// ready asks the process itself on a kept connection, on a new one whoever
// listens by now.
func (s *simShell) ready(c *simChild, kept bool, until time.Duration, then func(bool)) {
	p, address := c.proc, c.input.boot.admin
	answers := kept && !p.busy() || !kept && s.w.kernel.admin(address) != nil
	waits := kept || s.w.kernel.silent(address)
	switch {
	case answers:
		then(true)
	case waits && s.w.now < until && p.alive:
		s.w.ours(250*time.Millisecond, func() { s.ready(c, kept, until, then) })
	default:
		then(false)
	}
}

// askStats asks an epoch's main thread by its hot-restart socket → Asked. What
// remains of a dead newcomer has the name for the answer: it makes way.
func (s *simShell) askStats(c *simChild) {
	until := s.w.now + guardTime
	s.makeWay(s.inPlaceOf(c.epoch+1), func() bool { return s.w.now >= until }, func(ok bool) {
		s.awaitAnswer(c, ok, s.w.now+guardTime)
	})
}

func (s *simShell) awaitAnswer(c *simChild, asked bool, until time.Duration) {
	answers := asked && c.proc.alive && !c.proc.deaf()
	if answers || !asked || s.w.now >= until {
		s.post(Asked{Epoch: c.epoch, Answers: answers}, nil)
		return
	}
	s.w.ours(250*time.Millisecond, func() { s.awaitAnswer(c, asked, until) })
}
