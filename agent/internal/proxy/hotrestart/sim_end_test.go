package hotrestart

import (
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// This file judges ends: of processes, of streams, of the supervisor, and of
// the bad luck, after which all must be well again.

// died is asked as a process ends.
func (r *rules) died(p *simEnvoy, why cause) {
	if why == byFault {
		r.faults++
	}
	s := p.owner
	g := s.state.gen(p.epoch)
	committed := g != nil && !g.uncommitted() && g.Phase != Removing
	if p.step == stepLive && (why == byFault || why == byItself || why == byAbort && s.wasStopped() || p.obeysLate(why)) {
		s.lost = true
		r.mayBeDark(p.name() + " was hurt")
		r.orphans(p)
	}
	if why := r.pardons[p.pid]; why != "" {
		r.mayBeDark(p.name() + " is ended: " + why)
	}
	switch {
	case why == byAbort && !r.w.plain && !s.wasStopped():
		r.broke("rule 6: requests and answers find somebody", "epoch %d aborts", p.epoch)
	case why == byStray && !r.w.plain && (committed || r.faults == 0):
		r.broke("rule 6: an answer is for the request before it", "epoch %d aborts", p.epoch)
	case why == byFlag:
		r.broke("fact 2: the flag is repaired", "epoch %d finds it set", p.epoch)
	case s.state.Stage == Running && g != nil:
		r.diedWhileRunning(p, g, why)
	}
	for _, c := range p.left() {
		if r.broken == nil && !r.mayBeCut(p, g, why, c) {
			r.broke("no stream is cut before its time", "epoch %d ends with one that is %s old", p.epoch, r.w.now-c.born)
		}
	}
}

// obeysLate: it was stopped, and reads what a child that has gone since has told
// it. A relay tells a parent no such thing unless it leaves its end to Envoy (UDP).
func (p *simEnvoy) obeysLate(why cause) bool {
	return why == byTerminate && p.awake > 0 && p.w.now-p.awake < time.Second
}

// wasStopped: its supervisor could not answer for what died.
func (s *simShell) wasStopped() bool {
	return s.dead || s.pausedUntil > 0 && s.w.now < s.pausedUntil+12*time.Second
}

func (r *rules) diedWhileRunning(p *simEnvoy, g *Generation, why cause) {
	ours := why == bySIGTERM || why == bySIGKILL || why == byTerminate
	switch {
	case r.pardons[p.pid] != "":
	case p.obeysLate(why):
	case r.w.plain && why == byTerminate: // its child has committed itself, whether we know it or not
	case why == byTerminate && r.follower(p) != nil && r.follower(p).input.mode != ModeRelay: // we may not know yet
	case g.Phase == Serving && ours:
		r.broke("rule 1: the serving epoch serves", "epoch %d is ended", p.epoch)
	case why == byTerminate && g.Input.Mode == ModeRelay && r.successorMode(p) == ModeRelay:
		r.broke("rule 6: no timer of Envoy's ends a parent", "epoch %d", p.epoch)
	case (g.uncommitted() || g.Phase == Removing) && (why == bySIGTERM || why == byTerminate):
		r.broke("rule 7: only SIGKILL to a newcomer, in the end", "epoch %d", p.epoch)
	}
}

func (r *rules) successorMode(p *simEnvoy) Mode {
	if next := p.owner.state.gen(p.epoch + 1); next != nil {
		return next.Input.Mode
	}
	if c := r.follower(p); c != nil {
		return c.input.mode
	}
	return ModeRelay
}

// follower is another supervisor's committed epoch that has taken over from one.
func (r *rules) follower(p *simEnvoy) *simChild {
	for _, s := range r.w.living() {
		for _, c := range s.children {
			if s != p.owner && !c.foreign && c.committed && c.parent >= 0 && (c.epoch-1-p.epoch)%envoy.Seats == 0 {
				return c
			}
		}
	}
	return nil
}

// mayBeCut is whether a connection has had all the time it was promised.
func (r *rules) mayBeCut(p *simEnvoy, g *Generation, why cause, c connection) bool {
	s, child := &p.owner.state, p.owner.children[p.epoch]
	switch {
	case why == byFault, why == byItself, why == byAbort, why == byStray, g == nil:
		return true
	case why == byTerminate: // Envoy's own timer; diedWhileRunning says where it may
		return true
	case r.pardons[p.pid] != "", child != nil && child.mayCut:
		return true
	case g.Phase == Removing:
		return false
	case g.Limit && !p.owner.clock(r.w.now).Before(g.DrainingFrom.Add(r.w.limits.Parent)):
		return true
	case s.Stage == Running:
		return !g.Limit // then it is Envoy's own timer
	case p.owner.stopAsked == 0: // nothing serves any more, and nothing can
		return true
	}
	return p.owner.hurried > 0 || c.born > p.owner.stopAsked || !p.owner.clock(r.w.now).Before(s.StopBy)
}

// stopping: rule 8, there is always an end, and in time.
func (r *rules) stopping(s *simShell, before State) {
	l := r.w.limits
	const slack = 15 * time.Second // calls that time out, a busy machine
	if r.newest == s {
		r.mayBeDark(s.name + " is asked to stop, and nobody has followed")
	}
	end := l.Drain + max(l.Drain, l.Parent) + 2*l.Kill + slack
	switch before.Stage {
	case Running:
		s.stopAsked = max(r.w.now, 1) // zero means never
	case Stopping:
		s.hurried = max(r.w.now, 1)
		end = 2*l.Kill + slack
	default:
		return
	}
	others := len(r.w.shells)
	r.by(s, r.w.now+end, "rule 8: always an end", func() bool {
		if len(r.w.living()) > 1 || len(r.w.shells) > others {
			return true // it waits for another pod's; the grace period is the limit
		}
		return s.over || s.state.Rival != nil && !s.state.Rival.Relay // then Envoy's timer is the limit
	})
}

// catchUp is what a supervisor that was stopped may need to do all that is overdue.
const catchUp = 10 * time.Second

// by makes sure that something has come true at a time; a stopped supervisor
// has that much longer.
func (r *rules) by(s *simShell, at time.Duration, rule string, done func() bool) {
	excused := s.excused
	r.w.after(at-r.w.now, func() {
		switch {
		case done() || r.w.over || s.dead:
		case s.excused > excused || s.pausedUntil > 0 && s.pausedUntil+catchUp > r.w.now:
			more := max(s.excused-excused, s.pausedUntil-r.w.now, 0)
			r.by(s, r.w.now+more+catchUp, rule, done)
		default:
			r.broke(rule, "not at %s", at)
		}
	})
}

// excused: in plain mode nothing stands between Envoy and a process that was hurt,
// or a supervisor that was stopped while a newcomer committed itself.
func (r *rules) excused() bool { return r.w.plain && r.faults > 0 }

// ended is asked when the supervisor has come to its end.
func (r *rules) ended(s *simShell) {
	for _, p := range r.w.kernel.procs {
		if p.owner == s {
			r.broke("rule 8: nothing is left", "epoch %d lives", p.epoch)
		}
	}
	for waiter, by := range r.owed {
		if by == s {
			r.broke("exactly one answer", "caller %d has none", waiter)
		}
	}
	switch st := &s.state; {
	case s.stopAsked > 0 && st.Code != ExitOK:
		r.broke("rule 8: SIGTERM ends in exit 0", "exit code %d: %s", st.Code, st.Reason)
	case s.stopAsked == 0 && st.Served && !s.lost && !r.excused():
		r.broke("rule 1: the serving epoch serves", "the supervisor ends although nobody asked: %s", st.Reason)
	case s.stopAsked == 0 && st.Code == ExitOK:
		r.broke("always explained", "it ends with 0 although nobody asked")
	}
}

// settle ends all bad luck. From here on everything must become well by itself.
func (u *user) settle() {
	w := u.w
	w.tell("user", "from here on nothing bad happens")
	w.clients.rare = true
	u.ambushes, u.hangs, u.unreadable, u.noFork = nil, 0, 0, 0
	u.blindUntil, u.checkUntil = 0, 0
	for _, p := range slices.Clone(w.kernel.procs) { // some may die of what waits for them
		p.resume()
	}
	w.plane.become(planeGood)
	u.made++
	good := *u.file
	good.id, good.flaw, good.slow = u.made, flawNone, 0
	if w.plain {
		good.fetch = 0
	}
	u.write(&good)
	heals := func() { u.heals(w.now + w.rules.longest() + mostHeal) }
	if w.kubelet != nil {
		w.kubelet.settle(heals)
		return
	}
	heals()
}

// longest is what a handoff may take: the one before it fails at its deadline
// and is taken back, and the oldest generation needs its limit.
func (r *rules) longest() time.Duration {
	l := r.w.limits
	return 3*(l.Handoff+2*l.Drain) + 2*l.Parent + validateTime + 30*time.Second
}

// heals waits until nothing is under way and the serving epoch answers at its
// admin (fact 6), then makes the last handoff.
func (u *user) heals(until time.Duration) {
	switch s := u.w.settled(); {
	case s == nil && u.w.kubelet != nil:
		u.w.kubelet.settle(func() { u.heals(u.w.now + u.w.rules.longest() + mostHeal) })
	case s == nil:
		return
	case s.heals():
		u.handsOff(s, u.w.now+2*u.w.rules.longest(), -1)
	case u.w.now > until:
		u.w.rules.broke("what is broken heals", "busy %t, serving %t, no admin or no rest after %s", s.busy(), s.state.ours() != nil, until)
	default:
		u.w.after(time.Second, func() { u.heals(until) })
	}
}

// settled is the supervisor that is left after all bad luck; nil: it stops.
func (w *world) settled() *simShell {
	if s := w.newest(); s != nil && s.state.Stage == Running {
		return s
	}
	return nil
}

func (s *simShell) busy() bool {
	return s.state.Wanted != nil || s.state.Reading != nil || s.state.Ready != nil || s.state.newcomer() != nil
}

// heals tells whether nothing is under way, and the serving epoch answers.
func (s *simShell) heals() bool {
	g := s.state.ours()
	if g == nil || s.busy() {
		return false
	}
	c := s.children[g.Epoch]
	return s.w.kernel.admin(s.w.adminOf(c.input.boot, g.Epoch)) == c.proc
}

// handsOff reloads until a handoff is committed, then stops.
func (u *user) handsOff(s *simShell, until time.Duration, waiter int) {
	r := &u.w.rules
	if s.state.Stage != Running {
		if k := u.w.kubelet; k != nil && !k.ending { // its container is started again
			k.settle(func() { u.heals(u.w.now + r.longest() + mostHeal) })
		}
		return
	}
	switch answer, answered := r.answers[waiter]; {
	case answered && answer.Outcome == "committed":
		if g := s.state.ours(); g != nil && s.children[g.Epoch].input.boot.id != u.file.id {
			r.broke("rule 4: the newest input wins", "epoch %d serves %s, the file holds %s", g.Epoch, s.children[g.Epoch].input.boot.describe(), u.file.describe())
		}
		if u.w.kubelet != nil {
			u.w.kubelet.end()
			return
		}
		u.terminate()
		return
	case u.w.now > until:
		r.broke("rule 1: the next handoff is possible", "none was committed by %s", until)
	case waiter < 0 || answered:
		waiter = u.reload(false, "proxyctl reload --wait")
	}
	u.w.after(time.Second, func() { u.handsOff(s, until, waiter) })
}

// attempts count what the supervisor tries by itself.
type attempts struct {
	heals     int
	healed    time.Duration
	respawns  int
	epoch     int
	committed time.Duration
}

// launch: heals come at growing intervals, respawns are few (fact 21).
func (t *attempts) launch(r *rules, s *simShell, a Launch) {
	by := s.state.newcomer().Want.Triggers
	switch {
	case len(by) != 1: // somebody else wants it, too
	case by[0] == TriggerHeal:
		if t.heals > 0 && r.w.now-t.healed < min(firstHeal<<min(t.heals, 10), mostHeal) {
			r.broke("tries are bounded", "heal %d comes %s after the one before", t.heals+1, r.w.now-t.healed)
		}
		t.heals, t.healed = t.heals+1, r.w.now
	case by[0] == TriggerRespawn:
		if a.Epoch != t.epoch || s.state.Orphaned || t.committed > 0 && r.w.now-t.committed > steadyTime {
			t.respawns, t.epoch = 0, a.Epoch
		}
		most := maxRespawns
		if r.w.kubelet != nil {
			most++ // the first may be a start from another pod's epoch
		}
		if t.respawns++; t.respawns > most {
			r.broke("tries are bounded", "epoch %d is started again, %d times", a.Epoch, t.respawns)
		}
	}
}

func (t *attempts) commit(r *rules, epoch int) {
	t.heals, t.committed = 0, r.w.now
	if epoch != t.epoch {
		t.respawns = 0
	}
}
