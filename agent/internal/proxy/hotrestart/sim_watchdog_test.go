package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

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
				s.ours(guardPeriod, look)
				return
			}
			silent = !ok
			s.post(Silenced{Epoch: c.epoch, Ends: ok}, func() { s.ours(guardPeriod, look) })
		})
	}
	s.ours(guardPeriod, look)
}

// ready asks the process itself on a kept connection, on a new one whoever
// listens by now.
func (s *simShell) ready(c *simChild, kept bool, until time.Duration, then func(bool)) {
	p, address := c.proc, s.w.adminOf(c.input.boot, c.epoch)
	answers := kept && !p.busy() || !kept && s.w.kernel.admin(address) != nil
	waits := kept || s.w.kernel.silent(address)
	switch {
	case answers:
		then(true)
	case waits && s.w.now < until && p.alive:
		s.ours(250*time.Millisecond, func() { s.ready(c, kept, until, then) })
	default:
		then(false)
	}
}

// askStats asks an epoch's main thread by its hot-restart socket → Asked.
func (s *simShell) askStats(c *simChild) {
	over := false
	tell := func(answers bool) {
		if !over {
			over = true
			s.report(c, Asked{Epoch: c.epoch, Answers: answers}, nil)
		}
	}
	c.asParent.ask(&simQuestion{envoy.StatsRequest, tell, func() bool { return over }})
	s.ownTime(guardTime, func() { tell(false) })
}
