package hotrestart

import (
	"errors"
	"io/fs"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simChild is the shell's side of an epoch, as in child.go.
type simChild struct {
	epoch, parent int
	input         *simInput
	proc          *simEnvoy
	relay         *simRelay
	link          *link
	asParent      *simParent

	launched     bool
	whenLaunched []func()
	over         bool // taken back, or it has ended
	live         bool // its relay has seen drain_listeners
	whenLive     func()
	tookAdmin    bool
	removing     bool
	hasty        bool
	committed    bool
	doubt        time.Duration // until then it may answer a dead newcomer of plain mode
	before       func() [envoy.Seats]*simEnvoy
	older        [envoy.Seats]*simEnvoy
	leads        bool       // its parent serves, and is ours
	foreign      bool       // another supervisor's
	ofParent     *simParent // what another supervisor's parent answers it
	follows      *simEnvoy  // that parent
	mayCut       bool       // its connections had all the time there was

	want  bool  // its parent had the dynamic listener
	known *bool // whether it had it when last asked; nil: never asked
}

// launch takes the seat, stands the relay up and forks → Launched.
func (s *simShell) launch(a Launch) {
	in := s.inputs[a.Input.ID]
	if in == nil {
		s.w.rules.broke("every action has its object", "epoch %d is launched with input %d, which is freed", a.Epoch, a.Input.ID)
		return
	}
	c := &simChild{epoch: a.Epoch, parent: a.Parent, input: in}
	parent := s.children[a.Parent]
	c.leads = s.state.servingEpoch() == a.Parent
	s.children[a.Epoch] = c
	again := s.state.Lost != nil
	c.before = func() [envoy.Seats]*simEnvoy {
		if again {
			return s.older
		}
		return s.sitters()
	}
	s.outwait(c, parent, func(ok bool) {
		if !ok {
			s.hasLaunched(c, &Refusal{Step: "prepare the seat", Text: unread, Code: ExitUnexpected})
			return
		}
		s.askParent(c, parent, func() { s.takeSeat(c, parent, s.w.now+time.Second) })
	})
}

// askParent asks what the newcomer must have. A silent admin leaves what it
// said last.
func (s *simShell) askParent(c, parent *simChild, then func()) {
	if parent == nil || !parent.input.boot.dynamic {
		s.ours(0, then)
		return
	}
	s.askAdmin(parent, func(p *simEnvoy) {
		parent.learn(p)
		c.want = parent.known != nil && *parent.known
		then()
	})
}

// askAdmin asks whoever answers at a child's admin address; nil: nobody. One
// that is there but busy may take up the time of a call.
func (s *simShell) askAdmin(c *simChild, then func(*simEnvoy)) {
	const call = 2 * time.Second
	address, until := s.w.adminOf(c.input.boot, c.epoch), s.w.now+call
	b := simPause{s.w.between(s.rng, time.Millisecond, 10*time.Millisecond), 100 * time.Millisecond}
	var look func()
	look = func() {
		p := s.w.kernel.admin(address)
		if p == nil && s.w.kernel.silent(address) && s.w.now < until {
			s.ours(b.next(), look)
			return
		}
		then(p)
	}
	s.ours(b.next(), look)
}

func (s *simShell) takeSeat(c, parent *simChild, until time.Duration) {
	seat := c.epoch % envoy.Seats
	switch k := &s.w.kernel; {
	case !k.held(seat):
		k.holder[seat] = s
		s.w.after(s.w.between(s.rng, 50*time.Microsecond, 2*time.Millisecond), func() {
			k.holder[seat] = nil
			if !s.dead {
				s.fork(c, parent)
			}
		})
	case c.over || s.w.now >= until:
		s.hasLaunched(c, &Refusal{Step: "take the seat", Text: "it is held by somebody else", Code: ExitTaken, Again: true})
	default:
		s.ours(50*time.Millisecond, func() { s.takeSeat(c, parent, until) })
	}
}

func (s *simShell) fork(c, parent *simChild) {
	c.older = c.before()
	if parent != nil && (c.leads && s.passed(parent) || s.newerThan(c.parent) || s.replaced(parent)) {
		s.hasLaunched(c, &Refusal{Step: "take the seat", Text: "another pod's epoch serves in place of its parent", Code: ExitTaken, Again: parent.foreign || s.replaced(parent)})
		return
	}
	if parent == nil && !s.alone() {
		s.hasLaunched(c, &Refusal{Step: "take the seat", Text: "somebody else has started meanwhile", Code: ExitTaken, Again: true})
		return
	}
	if err := s.standBetween(c, parent); err != nil {
		s.hasLaunched(c, &Refusal{Step: "prepare the seat", Text: err.Error(), Code: ExitUnexpected, Again: errors.Is(err, errPeerGone)})
		return
	}
	if s.w.user.spend(&s.w.user.noFork) {
		s.hasLaunched(c, &Refusal{Step: "start Envoy", Text: "resource temporarily unavailable", Code: ExitBinary})
		return
	}
	timer := s.w.limits.Parent
	if c.input.mode == ModeRelay {
		timer += s.w.limits.Handoff + envoySlack
	}
	c.proc = &simEnvoy{owner: s, epoch: c.epoch, boot: c.input.boot, timer: timer, drainTime: s.w.limits.Drain}
	s.w.kernel.spawn(c.proc)
	s.hasLaunched(c, nil)
}

func (s *simShell) standBetween(c *simChild, parent *simChild) error {
	k := &s.w.kernel
	if parent != nil {
		n := k.names[c.parent%envoy.Seats]
		switch {
		case n == nil && parent.foreign:
			return errPeerGone
		case n == nil:
			return fs.ErrNotExist
		}
		n.link(nil, false, false)
		if !parent.foreign {
			parent.asParent.relinked()
		}
	}
	c.asParent = &simParent{s: s, epoch: c.epoch}
	k.names[c.epoch%envoy.Seats] = &names{own: c.asParent}
	if parent == nil {
		return nil
	}
	from := parent.asParent
	if parent.foreign {
		if err := s.follow(c, parent); err != nil {
			return err
		}
		from = c.ofParent
	} else {
		s.clearFlag(c.epoch, c.follows)
	}
	c.link = &link{parent: c.parent}
	k.links[c.epoch%envoy.Seats] = c.link
	if c.input.mode == ModePlain {
		k.names[c.parent%envoy.Seats].link(nil, false, true)
		return nil
	}
	c.relay = &simRelay{
		s: s, logic: envoy.NewRelayLogic(c.input.mode == ModeUDP, s.w.ownAdmin), parent: from, child: c,
		seen: c.sees,
	}
	c.link.relay = c.relay
	return nil
}

// tearDown is that of child.go.
func (s *simShell) tearDown(c *simChild) {
	k, seat := &s.w.kernel, c.epoch%envoy.Seats
	seated := c.asParent != nil && !k.held(seat) // else somebody else's newcomer sits there by now
	if parent := s.children[c.parent]; parent != nil && seated {
		if n := k.names[c.parent%envoy.Seats]; n != nil { // Unlink
			n.link(nil, false, false)
		}
		if c.relay == nil && !c.committed && c.proc != nil {
			parent.doubt = s.w.now + sendRetry
		}
	}
	if c.relay != nil {
		c.relay.closed = true
	}
	for _, p := range []*simParent{c.ofParent, c.asParent} {
		if p != nil {
			p.closed = true
		}
	}
	if seated {
		k.names[seat], k.links[seat] = nil, nil
	}
}

// outwait is that of remains.go.
func (s *simShell) outwait(c, parent *simChild, then func(bool)) {
	if parent == nil || parent.doubt == 0 {
		then(true)
		return
	}
	until := parent.doubt
	var look func()
	look = func() {
		if !parent.foreign && parent.proc.stopped {
			until = max(until, s.w.now+answering)
		}
		switch {
		case s.w.now >= until:
			then(true)
		case c.over:
			then(false)
		default:
			s.ours(50*time.Millisecond, look)
		}
	}
	look()
}

// sees is what a relay tells the shell.
func (c *simChild) sees(r envoy.Request) {
	switch r {
	case envoy.ShutdownAdmin:
		c.tookAdmin = !c.relay.s.w.ownAdmin
	case envoy.DrainListeners:
		c.live = true
		if c.whenLive != nil {
			c.whenLive()
			c.whenLive = nil
		}
	}
}

func (s *simShell) hasLaunched(c *simChild, failed *Refusal) {
	c.launched = true
	l := Launched{Epoch: c.epoch, Failed: failed}
	if c.proc != nil {
		l.Pid = c.proc.pid
		s.w.kernel.onExit(c.proc, func() { s.reap(c) })
	}
	s.report(c, l, nil)
	for _, do := range c.whenLaunched {
		s.ours(0, do)
	}
}

// reap tells the owner how a child ended.
func (s *simShell) reap(c *simChild) {
	c.over = true
	wait := s.busyFor()
	s.ours(wait, func() {
		if s.children[c.epoch] == c {
			s.step(Exited{Epoch: c.epoch, Status: s.statuses[c.proc.pid], Code: ExitNewest, Rival: s.followed(c.epoch) || s.followedSoon(c.epoch) || s.newerThan(c.epoch)})
		}
	})
}

// simPause is the pause between two looks.
type simPause struct{ pause, most time.Duration }

func (b *simPause) next() time.Duration {
	p := b.pause
	b.pause = min(b.pause*3/2, b.most)
	return p
}

// count watches a draining epoch until it has ended → Counted.
func (s *simShell) count(c *simChild) {
	b := simPause{10 * time.Millisecond, 500 * time.Millisecond}
	var look func()
	look = func() {
		if !c.over {
			n := s.kernelCount(c)
			if n == 0 && c.proc.open != 0 {
				n = unknown // it still listens
			}
			s.report(c, Counted{c.epoch, n}, func() { s.ours(b.next(), look) })
		}
	}
	s.ours(b.next(), look)
}

func (s *simShell) kernelCount(c *simChild) int {
	if c.input.boot.uncountable || s.w.now < s.w.user.blindUntil {
		return unknown
	}
	return len(c.proc.left())
}
