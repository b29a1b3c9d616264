package hotrestart

import (
	"slices"
	"time"
)

// This file judges ends: of processes, of streams, of the supervisor, and of
// the bad luck, after which all must be well again.

// died is asked as a process ends.
func (r *rules) died(p *simEnvoy, why cause) {
	if why == byFault {
		r.faults++
	}
	s := &r.w.shell.state
	g := s.gen(p.epoch)
	committed := g != nil && !g.uncommitted() && g.Phase != Removing
	r.lost = r.lost || p.step == stepLive && (why == byFault || why == byItself)
	switch {
	case why == byAbort && !r.w.plain:
		r.broke("rule 6: requests and answers find somebody", "epoch %d aborts", p.epoch)
	case why == byStray && !r.w.plain && (committed || r.faults == 0):
		r.broke("rule 6: an answer is for the request before it", "epoch %d aborts", p.epoch)
	case why == byFlag:
		r.broke("fact 2: the flag is repaired", "epoch %d finds it set", p.epoch)
	case s.Stage == Running && g != nil:
		r.diedWhileRunning(p, g, why)
	}
	for _, c := range p.left() {
		if r.broken == nil && !r.mayBeCut(p, g, why, c) {
			r.broke("no stream is cut before its time", "epoch %d ends with one that is %s old", p.epoch, r.w.now-c.born)
		}
	}
}

func (r *rules) diedWhileRunning(p *simEnvoy, g *Generation, why cause) {
	ours := why == bySIGTERM || why == bySIGKILL || why == byTerminate
	switch {
	case r.pardons[p.pid] != "":
	case r.w.plain && why == byTerminate: // its child has committed itself, whether we know it or not
	case g.Phase == Serving && ours:
		r.broke("rule 1: the serving epoch serves", "epoch %d is ended", p.epoch)
	case why == byTerminate && g.Input.Mode == ModeRelay && r.successorMode(g) == ModeRelay:
		r.broke("rule 6: no timer of Envoy's ends a parent", "epoch %d", p.epoch)
	case (g.uncommitted() || g.Phase == Removing) && (why == bySIGTERM || why == byTerminate):
		r.broke("rule 7: only SIGKILL to a newcomer, in the end", "epoch %d", p.epoch)
	}
}

func (r *rules) successorMode(g *Generation) Mode {
	if next := r.w.shell.state.gen(g.Epoch + 1); next != nil {
		return next.Input.Mode
	}
	return ModeRelay
}

// mayBeCut is whether a connection has had all the time it was promised.
func (r *rules) mayBeCut(p *simEnvoy, g *Generation, why cause, c connection) bool {
	s := &r.w.shell.state
	child := r.w.shell.children[p.epoch]
	switch {
	case why == byFault, why == byItself, why == byAbort, why == byStray, g == nil:
		return true
	case why == byTerminate: // Envoy's own timer; diedWhileRunning says where it may
		return true
	case r.pardons[p.pid] != "", child != nil && child.mayCut:
		return true
	case g.Phase == Removing:
		return false
	case g.Limit && !r.w.clock(r.w.now).Before(g.DrainingFrom.Add(r.w.limits.Parent)):
		return true
	case s.Stage == Running:
		return !g.Limit // then it is Envoy's own timer
	case r.stopAsked == 0: // nothing serves any more, and nothing can
		return true
	}
	return r.hurried > 0 || c.born > r.stopAsked || !r.w.clock(r.w.now).Before(s.StopBy)
}

// stopping: rule 8, there is always an end, and in time.
func (r *rules) stopping(before State) {
	l := r.w.limits
	const slack = 15 * time.Second // calls that time out, a busy machine
	end := l.Drain + max(l.Drain, l.Parent) + 2*l.Kill + slack
	switch before.Stage {
	case Running:
		r.stopAsked = max(r.w.now, 1) // zero means never
	case Stopping:
		r.hurried = max(r.w.now, 1)
		end = 2*l.Kill + slack
	default:
		return
	}
	until := r.w.now + end
	r.by(until, "rule 8: always an end", func() bool { return r.w.over })
}

// by makes sure that something has come true at a time; a stopped supervisor
// has that much longer.
func (r *rules) by(at time.Duration, rule string, done func() bool) {
	excused := r.excusedTime
	r.w.after(at-r.w.now, func() {
		switch {
		case done() || r.w.over:
		case r.excusedTime > excused || r.w.pausedUntil > r.w.now:
			more := max(r.excusedTime-excused, r.w.pausedUntil-r.w.now)
			r.by(r.w.now+more, rule, done)
		default:
			r.broke(rule, "not at %s", at)
		}
	})
}

// excused: in plain mode nothing stands between Envoy and a process that was hurt,
// or a supervisor that was stopped while a newcomer committed itself.
func (r *rules) excused() bool { return r.w.plain && r.faults > 0 }

// ended is asked when the supervisor has come to its end.
func (r *rules) ended() {
	s := &r.w.shell.state
	if n := len(r.w.kernel.procs); n > 0 {
		r.broke("rule 8: nothing is left", "%d processes live", n)
	}
	if len(r.owed) > 0 {
		r.broke("exactly one answer", "callers %v have none", r.owed)
	}
	switch {
	case r.stopAsked > 0 && s.Code != ExitOK:
		r.broke("rule 8: SIGTERM ends in exit 0", "exit code %d: %s", s.Code, s.Reason)
	case r.stopAsked == 0 && s.Served && !r.lost && !r.excused():
		r.broke("rule 1: the serving epoch serves", "the supervisor ends although nobody asked: %s", s.Reason)
	case r.stopAsked == 0 && s.Code == ExitOK:
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
	u.heals(w.now + w.rules.longest() + mostHeal)
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
	s := &u.w.shell.state
	busy := s.Wanted != nil || s.Reading != nil || s.Ready != nil || s.newcomer() != nil
	g := s.serving()
	switch {
	case s.Stage != Running:
		return
	case !busy && g != nil && u.w.kernel.admin(u.w.adminOf(u.w.shell.children[g.Epoch].input.boot, g.Epoch)) == u.w.shell.children[g.Epoch].proc:
		u.handsOff(u.w.now+2*u.w.rules.longest(), -1)
	case u.w.now > until:
		u.w.rules.broke("what is broken heals", "busy %t, serving %t, no admin or no rest after %s", busy, g != nil, until)
	default:
		u.w.after(time.Second, func() { u.heals(until) })
	}
}

// handsOff reloads until a handoff is committed, then stops.
func (u *user) handsOff(until time.Duration, waiter int) {
	r := &u.w.rules
	if u.w.shell.state.Stage != Running {
		return
	}
	switch answer, answered := r.answers[waiter]; {
	case answered && answer.Outcome == "committed":
		if g := u.w.shell.state.serving(); g != nil && u.w.shell.children[g.Epoch].input.boot.id != u.file.id {
			r.broke("rule 4: the newest input wins", "epoch %d serves %s, the file holds %s", g.Epoch, u.w.shell.children[g.Epoch].input.boot.describe(), u.file.describe())
		}
		u.terminate()
		return
	case u.w.now > until:
		r.broke("rule 1: the next handoff is possible", "none was committed by %s", until)
	case waiter < 0 || answered:
		waiter = u.reload(false, "proxyctl reload --wait")
	}
	u.w.after(time.Second, func() { u.handsOff(until, waiter) })
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
func (t *attempts) launch(r *rules, a Launch) {
	by := r.w.shell.state.newcomer().Want.Triggers
	switch {
	case len(by) != 1: // somebody else wants it, too
	case by[0] == TriggerHeal:
		if t.heals > 0 && r.w.now-t.healed < min(firstHeal<<min(t.heals, 10), mostHeal) {
			r.broke("tries are bounded", "heal %d comes %s after the one before", t.heals+1, r.w.now-t.healed)
		}
		t.heals, t.healed = t.heals+1, r.w.now
	case by[0] == TriggerRespawn:
		if a.Epoch != t.epoch || t.committed > 0 && r.w.now-t.committed > steadyTime {
			t.respawns, t.epoch = 0, a.Epoch
		}
		if t.respawns++; t.respawns > maxRespawns {
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
