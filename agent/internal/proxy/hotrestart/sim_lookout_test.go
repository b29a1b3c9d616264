package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simLookout watches the seat after our newest epoch's, as lookout.go does.
type simLookout struct {
	*simShell
	own     *simChild
	next    int
	listens bool
	linked  int
	doubt   time.Duration
	gone    time.Duration // since when nobody is there who was; -1: somebody is
}

func (s *simShell) lookout(epoch int) {
	s.lookouts++
	mine := s.lookouts
	l := &simLookout{simShell: s, own: s.children[epoch], next: epoch + 1, gone: -1}
	l.drained()
	l.linked = l.linkedNow()
	var look func()
	look = func() {
		if mine == s.lookouts && !s.over {
			s.ours(l.watch(), look)
		}
	}
	s.ours(lookoutPause, look)
}

// watch looks once, and says when to look again.
func (l *simLookout) watch() time.Duration {
	now := &l.state
	if now.newcomer() != nil || now.sits(l.next) {
		l.gone = -1
		return lookoutPause
	}
	s, ok := l.look()
	switch {
	case ok:
		l.post(s, nil)
		return rivalPause
	case now.Rival != nil:
		return rivalPause
	}
	return lookoutPause
}

func (l *simLookout) look() (Sighted, bool) {
	k, rival := &l.w.kernel, l.state.Rival
	s := Sighted{Epoch: l.next, Lives: l.follower(l.own, l.next)}
	l.keepAnswers(s.Lives)
	direct := s.Lives
	s.Drained = rival != nil && rival.Superseded || (direct || rival == nil && l.passed(l.own)) && l.drained()
	s.Lives = direct || s.Drained && l.others()
	if s.Lives {
		l.gone = -1
		n := k.names[l.own.epoch%envoy.Seats]
		s.Relay = !direct || n != nil && n.taken != nil && !n.timed && !n.plain
		return s, true
	}
	if rival == nil && !s.Drained {
		if linked := l.linkedNow(); linked != l.linked {
			l.linked, l.doubt = linked, l.w.now+adminDoubt
			l.own.asParent.relinked()
		}
		s.AdminLost = l.w.now < l.doubt && !l.hasAdmin()
		return s, s.AdminLost
	}
	if l.gone < 0 {
		l.gone = l.w.now
	}
	seat := l.next % envoy.Seats
	if n := k.names[seat]; l.w.now-l.gone < ownRetry && n != nil && n.own.alive() {
		return s, false // its supervisor may start it again
	}
	if l.w.now-l.gone < seatPatience && l.begins() {
		return s, false
	}
	switch {
	case !k.held(seat):
		l.clearFlag(l.next, nil)
	case l.w.now-l.gone < seatPatience:
		return s, false
	}
	if rival != nil && !rival.Superseded {
		s.AdminLost = !l.hasAdmin()
	}
	return s, true
}

func (l *simLookout) hasAdmin() bool {
	if l.own.proc.deaf() {
		l.doubt = l.w.now + adminDoubt
		return true
	}
	return l.w.kernel.admin(l.w.adminOf(l.own.input.boot, l.own.epoch)) == l.own.proc
}

func (l *simLookout) linkedNow() int {
	if n := l.w.kernel.names[l.own.epoch%envoy.Seats]; n != nil {
		return n.links
	}
	return -1
}

func (s *simShell) sitters() (all [envoy.Seats]*simEnvoy) {
	for seat := range all {
		if s.w.kernel.answers(seat) {
			all[seat] = s.w.kernel.at(seat)
		}
	}
	return all
}

func (s *simShell) follower(ours *simChild, epoch int) bool {
	seat := epoch % envoy.Seats
	at := s.sitters()[seat]
	return at != nil && at != ours.older[seat]
}

// followed tells whether another supervisor's Envoy lives at the seat after an
// epoch's.
func (s *simShell) followed(epoch int) bool {
	c := s.children[epoch]
	return c != nil && c.launched && !s.state.sits(epoch+1) && s.follower(c, epoch+1)
}

func (s *simShell) replaced(c *simChild) bool {
	if c.foreign || c.proc == nil || c.proc.alive {
		return false
	}
	for seat := range envoy.Seats {
		if (seat == c.epoch%envoy.Seats || !s.state.sits(seat)) && s.w.kernel.held(seat) {
			return true
		}
	}
	return false
}

func (s *simShell) followedSoon(epoch int) bool {
	k, next := &s.w.kernel, (epoch+1)%envoy.Seats
	return !s.state.sits(epoch+1) && !k.answers(next) && k.held(next)
}

func (l *simLookout) others() bool {
	for seat := range envoy.Seats {
		if !l.state.sits(seat) && l.follower(l.own, seat) {
			return true
		}
	}
	return false
}

func (l *simLookout) begins() bool {
	k := &l.w.kernel
	for seat := range envoy.Seats {
		if seat != l.next%envoy.Seats && !l.state.sits(seat) && !k.answers(seat) && k.held(seat) {
			return true
		}
	}
	return false
}

// keepAnswers takes our epoch's answers back when nobody is behind their name any
// more.
func (l *simLookout) keepAnswers(lives bool) {
	k := &l.w.kernel
	n := k.names[l.own.epoch%envoy.Seats]
	plain := n != nil && n.plain && k.answers(l.next)
	if l.state.newcomer() != nil || l.children[l.own.epoch] != l.own || n.reached() || plain || n == nil {
		return
	}
	if !lives && k.held(l.next%envoy.Seats) {
		return
	}
	n.link(nil, false, false)
	if r := l.state.Rival; r == nil || !r.Superseded || !r.Relay {
		l.own.doubt = l.w.now + sendRetry
	}
	l.w.tell(l.name, "takes the answers of epoch %d back", l.own.epoch)
}

// drained tells whether our own epoch has closed its listening sockets. Where
// the kernel can't tell the heartbeat is believed.
func (l *simLookout) drained() bool {
	switch {
	case !l.own.proc.alive:
		return true
	case l.own.input.boot.uncountable:
	case l.own.proc.open != 0:
		l.listens = true
		return false
	case l.listens:
		return true
	}
	return l.passed(l.own)
}

func (s *simShell) passed(ours *simChild) bool {
	b := s.w.kernel.beat
	return b != nil && b.Epoch > ours.epoch
}
