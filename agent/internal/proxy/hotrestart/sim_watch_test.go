package hotrestart

import (
	"fmt"
	"time"
)

// This file looks at newcomers, as verify.go does.

// watchNewcomer waits for LIVE, then verifies.
func (s *simShell) watchNewcomer(c *simChild) {
	isLive := func() {
		s.report(c, WentLive{c.epoch}, func() { s.verify(c, &simPause{10 * time.Millisecond, 500 * time.Millisecond}) })
	}
	switch {
	case c.relay == nil:
		s.awaitLive(c, isLive, &simPause{5 * time.Millisecond, 100 * time.Millisecond})
	case c.live:
		isLive()
	default:
		c.whenLive = isLive
	}
}

func (s *simShell) awaitLive(c *simChild, isLive func(), b *simPause) {
	if c.over {
		return
	}
	s.askAdmin(c, func(p *simEnvoy) {
		if p == c.proc && p.step == stepLive {
			isLive()
			return
		}
		s.ours(b.next(), func() { s.awaitLive(c, isLive, b) })
	})
}

// verify looks until nothing is missing.
func (s *simShell) verify(c *simChild, b *simPause) {
	if c.over {
		return
	}
	s.askAdmin(c, func(p *simEnvoy) {
		missing := s.missing(c, p)
		again := func() { s.ours(b.next(), func() { s.verify(c, b) }) }
		verdict := func() {
			if len(missing) == 0 {
				s.report(c, Verified{c.epoch}, nil)
			} else {
				s.report(c, Unverified{c.epoch, missing}, again)
			}
		}
		first := c.known == nil
		c.learn(p)
		switch {
		case c.over:
		case first && c.known != nil:
			s.report(c, Answered{c.epoch}, verdict)
		default:
			verdict()
		}
	})
}

// learn keeps what an epoch had when it was last asked.
func (c *simChild) learn(p *simEnvoy) {
	if p != nil && p == c.proc && p.step == stepLive {
		had := p.dynamic
		c.known = &had
	}
}

// missing is what one look at a newcomer misses (rule 2). Shared addresses are
// answered by whoever owns them.
// Rule 12: TestRule12IdentityIsAskedOnAFreshConnection.
func (s *simShell) missing(c *simChild, p *simEnvoy) []string {
	switch {
	case p == nil:
		return []string{"its admin is silent"}
	case p != c.proc:
		return []string{fmt.Sprintf("its admin answers for epoch %d", p.epoch)}
	case p.step != stepLive:
		return []string{"state " + p.step.String()}
	case c.want && c.input.boot.dynamic && !p.dynamic:
		return []string{"the dynamic listener"}
	case c.input.boot.dynamic && !p.connected:
		return []string{"the control plane is not connected"}
	case s.w.now < s.w.user.checkUntil:
		return []string{"the verify command fails"}
	}
	return nil
}
