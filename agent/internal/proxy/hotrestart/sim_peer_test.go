package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// This file is what a new pod's supervisor does with another one's epoch, as in
// census.go, survey.go and adopt.go. The verdict is the real one's.

// whoLives looks at seats, sockets and the heartbeat.
func (s *simShell) whoLives() census {
	k := &s.w.kernel
	var c census
	for seat := range envoy.Seats {
		switch {
		case k.foreign[seat]:
			c.stranger = "a stranger holds a seat"
		case k.answers(seat):
			p := k.at(seat)
			c.seats[seat] = sitting{
				live: true, tended: k.names[seat] != nil && k.names[seat].own.alive(), epoch: p.epoch,
				committed: k.names[seat] != nil && k.names[seat].committed,
			}
		case k.held(seat):
			c.stranger = "a seat is held, and nobody answers"
		}
	}
	return c
}

func (s *simShell) newcomerBut(epoch int, parent *simEnvoy) bool {
	committed := func(seat int) bool { n := s.w.kernel.names[seat]; return n != nil && n.committed }
	before := (epoch + envoy.Seats - 1) % envoy.Seats
	at := s.sitters()[before]
	followed := at != nil && at.epoch == epoch-1 && (committed(before) || at == parent)
	for seat, p := range s.sitters() {
		if seat != epoch%envoy.Seats && p != nil && !committed(seat) && !(followed && p.epoch < epoch) {
			return true
		}
	}
	return false
}

func (s *simShell) newerThan(epoch int) bool {
	for _, p := range s.sitters() {
		if p != nil && p.epoch > epoch {
			return true
		}
	}
	return false
}

// survey waits while who lives is about to change.
func (s *simShell) survey(id int, then func(*Peer, *Refusal)) {
	b := &simPause{20 * time.Millisecond, 200 * time.Millisecond}
	began, since, waits, who := s.w.now, s.w.now, "", s.sitters()
	var look func()
	look = func() {
		if s.state.Stage != Running {
			return
		}
		v := s.whoLives().judge(s.w.limits.Handoff, s.w.limits.longestTry())
		if now := s.sitters(); v.awaits != waits || now != who {
			since, waits, who = s.w.now, v.awaits, now
			s.post(Awaits{id, waits}, nil)
		}
		over := s.w.now-since >= v.atMost || s.w.now-began >= s.w.limits.longestTry()+goodbye
		switch {
		case v.awaits != "" && !over:
			s.ours(b.next(), look)
		case v.awaits != "" && (v.refused || v.newest >= 0 && s.w.kernel.segment.flag):
			then(nil, &Refusal{Step: "look who lives", Text: v.awaits, Code: ExitTaken})
		case v.newest < 0:
			then(nil, nil)
		default:
			s.found = s.w.kernel.at(v.newest)
			then(&Peer{Epoch: v.newest}, nil)
		}
	}
	s.ours(s.w.between(s.rng, time.Millisecond, 5*time.Millisecond), look)
}

func (s *simShell) cutsGrandparent(p *Peer, mode Mode) bool {
	k, seat := &s.w.kernel, (p.Epoch+2)%envoy.Seats
	if !k.answers(seat) {
		return false
	}
	n := k.names[seat]
	return mode != ModeRelay || n == nil || n.plain || n.taken != nil && n.timed
}

// awaitGrandparent reads anew once that one has ended.
func (s *simShell) awaitGrandparent(a Read, p *Peer) {
	b := &simPause{100 * time.Millisecond, 500 * time.Millisecond}
	s.post(Awaits{a.ID, "the epoch before the newest to end"}, nil)
	until := s.w.now + s.w.limits.Handoff
	var look func()
	look = func() {
		switch {
		case s.state.Reading == nil || s.state.Reading.ID != a.ID:
		case !s.w.kernel.answers(p.Epoch + 2):
			s.post(Awaits{a.ID, ""}, nil)
			s.read(a)
		case s.w.now >= until:
			s.step(Prepared{ID: a.ID, Failed: &Refusal{Step: "look who lives", Text: "the epoch before still drains", Code: ExitTaken}})
		default:
			s.ours(b.next(), look)
		}
	}
	look()
}

// adopt makes another supervisor's epoch one of our children as far as it goes.
func (s *simShell) adopt(a Adopt) {
	p := s.inputs[a.Input.ID].peer
	c := &simChild{epoch: a.Epoch, parent: none, foreign: true, launched: true, proc: p}
	c.input = &simInput{boot: p.boot}
	c.learn(p)
	s.children[a.Epoch] = c
	var look func()
	look = func() {
		switch {
		case c.over:
		case p.alive:
			s.ours(peerPause, look)
		default:
			s.report(c, Exited{Epoch: c.epoch, Status: "its socket answers no more"}, nil)
		}
	}
	look()
}

// follow takes what another supervisor's epoch answers to our newcomer, whose
// seat we hold.
func (s *simShell) follow(c, parent *simChild) error {
	k := &s.w.kernel
	n := k.names[parent.epoch%envoy.Seats]
	if !parent.proc.alive || n == nil {
		return errPeerGone
	}
	c.follows = parent.proc
	s.clearFlag(c.epoch, c.follows)
	if c.input.mode != ModePlain {
		c.ofParent = &simParent{s: s, epoch: parent.epoch}
		c.ofParent.meet()
		n.link(c.ofParent, c.input.mode == ModeUDP, false)
	}
	return nil
}

// alone makes sure that epoch 0 finds nobody.
func (s *simShell) alone() bool {
	k := &s.w.kernel
	for seat := range envoy.Seats {
		if seat != 0 && k.held(seat) || k.answers(seat) {
			return false
		}
	}
	k.beat = nil
	return true
}

// gone lets relays answer for a dead parent.
func (s *simShell) gone(epoch int) {
	c := s.children[epoch]
	switch {
	case c == nil:
	case c.foreign:
		for _, n := range s.children {
			if n.parent == epoch && n.launched && n.ofParent != nil {
				n.ofParent.isGone()
			}
		}
	case c.launched && c.asParent != nil:
		c.asParent.isGone()
	}
}

// outlived tells a relay that has just been set up of a foreign parent that has
// ended meanwhile.
func (s *simShell) outlived(epoch int) {
	if c := s.children[epoch]; c != nil && c.ofParent != nil && s.children[c.parent] == nil {
		c.ofParent.isGone()
	}
}

// tidy leaves nothing behind, but what belongs to another supervisor's.
func (s *simShell) tidy() {
	k, taken := &s.w.kernel, 0
	for epoch := range s.children {
		s.release(epoch)
	}
	for seat := range envoy.Seats {
		if !k.held(seat) {
			k.names[seat], k.links[seat] = nil, nil
			taken++
		}
	}
	if taken == envoy.Seats {
		k.beat, k.segment.exists, k.segment.flag = nil, false, false
	}
}
