package hotrestart

import (
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
	mayCut       bool          // its connections had all the time there was

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
	s.children[a.Epoch] = c
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
		s.w.ours(0, then)
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
			s.w.ours(b.next(), look)
			return
		}
		then(p)
	}
	s.w.ours(b.next(), look)
}

func (s *simShell) takeSeat(c, parent *simChild, until time.Duration) {
	held := s.w.kernel.at(c.epoch) != nil || s.w.kernel.foreign[c.epoch%3]
	switch {
	case !held:
		s.fork(c, parent)
	case c.over || s.w.now >= until:
		s.hasLaunched(c, &Refusal{Step: "take the seat", Text: "it is held by somebody else", Code: ExitTaken})
	default:
		s.w.ours(50*time.Millisecond, func() { s.takeSeat(c, parent, until) })
	}
}

func (s *simShell) fork(c, parent *simChild) {
	s.standBetween(c, parent)
	if s.w.user.spend(&s.w.user.noFork) {
		s.hasLaunched(c, &Refusal{Step: "start Envoy", Text: "resource temporarily unavailable", Code: ExitBinary})
		return
	}
	timer := s.w.limits.Parent
	if c.input.mode == ModeRelay {
		timer += s.w.limits.Handoff + envoySlack
	}
	c.proc = &simEnvoy{epoch: c.epoch, boot: c.input.boot, timer: timer, drainTime: s.w.limits.Drain}
	s.w.kernel.spawn(c.proc)
	s.hasLaunched(c, nil)
}

func (s *simShell) standBetween(c *simChild, parent *simChild) {
	c.asParent = &simParent{w: s.w, epoch: c.epoch}
	s.w.kernel.ends[c.epoch%envoy.Seats] = c.asParent
	if parent == nil {
		return
	}
	c.link = &link{parent: c.parent}
	if c.input.mode != ModePlain {
		c.relay = &simRelay{
			w: s.w, logic: envoy.NewRelayLogic(c.input.mode == ModeUDP, s.w.ownAdmin), parent: parent.asParent, child: c.epoch,
			seen: c.sees,
		}
		c.link.relay = c.relay
	}
	s.w.kernel.links[c.epoch%envoy.Seats] = c.link
}

// tearDown is that of child.go.
func (s *simShell) tearDown(c *simChild) {
	if parent := s.children[c.parent]; parent != nil && c.relay == nil && !c.committed && c.proc != nil {
		parent.doubt = s.w.now + sendRetry
	}
	if c.relay != nil {
		c.relay.closed = true
	}
	if l := &s.w.kernel.links[c.epoch%envoy.Seats]; c.link != nil && *l == c.link {
		*l = nil
	}
	if e := &s.w.kernel.ends[c.epoch%envoy.Seats]; c.asParent != nil && *e == c.asParent {
		*e, c.asParent.closed = nil, true
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
		if parent.proc.stopped {
			until = max(until, s.w.now+answering)
		}
		switch {
		case s.w.now >= until:
			then(true)
		case c.over:
			then(false)
		default:
			s.w.ours(50*time.Millisecond, look)
		}
	}
	look()
}

// sees is what a relay tells the shell.
func (c *simChild) sees(r envoy.Request) {
	switch r {
	case envoy.ShutdownAdmin:
		c.tookAdmin = !c.relay.w.ownAdmin
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
		s.w.ours(0, do)
	}
}

// reap tells the owner how a child ended.
func (s *simShell) reap(c *simChild) {
	c.over = true
	s.report(c, Exited{Epoch: c.epoch, Status: s.statuses[c.proc.pid], Code: ExitNewest}, nil)
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
			s.report(c, Counted{c.epoch, n}, func() { s.w.ours(b.next(), look) })
		}
	}
	s.w.ours(b.next(), look)
}

func (s *simShell) kernelCount(c *simChild) int {
	if c.input.boot.uncountable || s.w.now < s.w.user.blindUntil {
		return unknown
	}
	return len(c.proc.left())
}
