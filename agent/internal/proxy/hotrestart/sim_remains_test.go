package hotrestart

import "time"

// This file keeps what a dead newcomer leaves as long as its parent may answer
// it, as remains.go does.

func (s *simShell) bury(c *simChild) {
	for epoch, r := range s.remains {
		if r.parent == c.epoch {
			delete(s.remains, epoch)
			s.tearDown(r)
		}
	}
	if c.proc == nil || s.children[c.parent] == nil {
		s.tearDown(c)
		return
	}
	c.link.sink = true
	if c.doubt = 0; !c.quiet() {
		c.doubt = s.w.now + sendRetry
	}
	s.remains[c.epoch] = c
}

func (s *simShell) tearDown(c *simChild) {
	if c.relay != nil {
		c.relay.closed = true
	}
	if l := &s.w.kernel.links[c.epoch%3]; c.link != nil && *l == c.link {
		*l = nil
	}
}

func (s *simShell) inPlaceOf(epoch int) *simChild {
	for e, r := range s.remains {
		if e%3 == epoch%3 {
			delete(s.remains, e)
			return r
		}
	}
	return nil
}

// makeWay ends what remains at a newcomer's seat once the parent has read what
// the dead one asked, and answered it; false: not before over.
func (s *simShell) makeWay(r *simChild, over func() bool, then func(bool)) {
	end := func() {
		if over() {
			s.remains[r.epoch] = r
			then(false)
			return
		}
		s.tearDown(r)
		then(true)
	}
	switch {
	case r == nil:
		then(true)
	case r.doubt == 0, over():
		end()
	case r.allRead():
		s.w.ours(max(answering, r.doubt-s.w.now), end)
	default:
		s.w.ours(50*time.Millisecond, func() { s.makeWay(r, over, then) })
	}
}

func (c *simChild) allRead() bool { return c.relay == nil || c.relay.unread == 0 }

func (c *simChild) quiet() bool {
	return c.allRead() && (c.relay == nil || c.relay.w.now-c.relay.passed > sendRetry)
}
