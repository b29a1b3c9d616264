package hotrestart

import (
	"fmt"
	"syscall"
	"time"
)

// violation is a rule that was broken, and how.
type violation struct{ rule, how string }

// rules watch a run. What is asked is always about the world: the core's own
// word counts only for what it meant to do.
type rules struct {
	w      *world
	broken *violation

	promised    listeners // what clients may rely on, since the last commit
	faults      int       // that were done to processes
	lost        bool      // a committed epoch has ended by a fault or by itself
	excusedTime time.Duration
	stopAsked   time.Duration // zero: not yet
	hurried     time.Duration
	owed        map[int]bool // callers of reload that have no answer
	answers     map[int]Result
	pardons     map[int]string // why a pid was ended before its time, with right
	tries       attempts
}

func (r *rules) broke(rule, how string, args ...any) {
	if r.broken == nil {
		r.broken = &violation{rule, fmt.Sprintf(how, args...)}
		r.w.tell("RULE", "%s: %s", rule, r.broken.how)
	}
}

// check is asked after everything that happens.
func (r *rules) check() {
	k := &r.w.kernel
	if len(k.procs) > 3 {
		r.broke("at most three generations", "%d processes live", len(k.procs))
	}
	for i, p := range k.procs {
		for _, q := range k.procs[:i] {
			if p.epoch%3 == q.epoch%3 {
				r.broke("fact 7: one epoch per seat", "epochs %d and %d live", p.epoch, q.epoch)
			}
		}
	}
	s := &r.w.shell.state
	if s.Stage != Running {
		return
	}
	if k.segment.flag && k.initializing() == nil && s.heir() != nil && s.newcomer() == nil {
		r.broke("fact 2: the flag is repaired", "nobody initialises, and it is set")
	}
	r.reachable(s.serving())
}

// reachable: while an epoch serves, somebody accepts at each promised listener.
func (r *rules) reachable(g *Generation) {
	if g == nil {
		return
	}
	c := r.w.shell.children[g.Epoch]
	if c == nil || c.proc == nil || !c.proc.alive || r.excused() {
		return
	}
	if r.w.ownAdmin && !c.proc.admin {
		r.broke("fact 23: with an admin of its own no epoch loses it", "epoch %d has", g.Epoch)
	}
	s := &r.w.shell.state
	if n := s.newcomer(); r.w.plain && (s.Heal != nil || n != nil && n.Phase == Removing) {
		return // it may have committed itself just before its deadline; the cure follows
	}
	for _, at := range []listeners{1, 2, 4} {
		if at == dynamicListener && r.w.plain {
			continue // a newcomer commits itself, whatever it has
		}
		if r.promised&at != 0 && len(r.w.kernel.accepting(at)) == 0 {
			r.broke("rule 1: no connection is refused", "epoch %d serves, and nobody accepts at listener %03b", g.Epoch, at)
		}
	}
}

// decided is asked after each turn of the owner.
func (r *rules) decided(before State, ev Event) {
	s := &r.w.shell.state
	serves := s.serving() != nil && s.Stage == Running
	if r.w.shell.marker != serves {
		r.broke("rule 13: the marker tells the truth", "marker %t, but serving %t in stage %d", r.w.shell.marker, s.serving() != nil, s.Stage)
	}
	if len(s.Gens) > 3 {
		r.broke("at most three generations", "%d", len(s.Gens))
	}
	if _, stop := ev.Is.(Stop); stop {
		r.stopping(before)
	}
	if s.Stage == Done {
		r.ended()
		r.w.over = true
	}
}

// action is asked before an action is carried out.
func (r *rules) action(before State, ev Event, a Action) {
	switch a := a.(type) {
	case Launch:
		r.launches(a)
	case Commit:
		r.commits(a.Epoch)
	case Publish:
		r.publishes(a.Epoch)
	case Signal:
		r.signals(before, ev, a)
	case Withdraw:
		if _, exited := ev.Is.(Exited); !exited && r.w.shell.state.Stage == Running {
			r.broke("rule 13: the marker stays while an epoch serves", "withdrawn at %T", ev.Is)
		}
	case Reply:
		r.replies(a)
	}
}

// launches: rule 10, a number follows from the living; rule 4, one at a time.
func (r *rules) launches(a Launch) {
	if r.w.shell.state.Stage != Running {
		r.broke("no fork while stopping", "epoch %d", a.Epoch)
	}
	newest := -1
	for i := range r.w.shell.state.Gens {
		if g := &r.w.shell.state.Gens[i]; !g.uncommitted() && g.Phase != Removing {
			newest = max(newest, g.Epoch)
		}
	}
	if a.Epoch != newest+1 {
		r.broke("rule 10: the next number", "epoch %d is launched, the newest living one is %d", a.Epoch, newest)
	}
	for _, p := range r.w.kernel.procs {
		if p.epoch >= a.Epoch {
			r.broke("rule 4: one handoff at a time", "epoch %d is launched, %d lives", a.Epoch, p.epoch)
		}
	}
	r.tries.launch(r, a)
}

// commits is rule 2, of the newcomer as it is and not as anybody saw it.
func (r *rules) commits(epoch int) {
	c, g := r.w.shell.children[epoch], r.w.shell.state.gen(epoch)
	if c == nil || c.proc == nil {
		r.broke("rule 2: only the verified is committed", "epoch %d has no process", epoch)
		return
	}
	p := c.proc
	needs := c.want && p.boot.dynamic // its parent had it when it was asked
	switch {
	case p.step != stepLive:
		r.broke("rule 2: only the verified is committed", "epoch %d is not LIVE but %s", epoch, p.step)
	case needs && !p.dynamic && !g.Want.Force:
		r.broke("rule 2: only the verified is committed", "epoch %d lacks the dynamic listener", epoch)
	}
}

// publishes: the world learns of an epoch once it is committed.
func (r *rules) publishes(epoch int) {
	c := r.w.shell.children[epoch]
	if c == nil || c.proc == nil {
		r.broke("rule 13: published once committed", "epoch %d has no process", epoch)
		return
	}
	if c.relay != nil && !c.relay.committed {
		r.broke("rule 13: published once committed", "epoch %d is not committed", epoch)
	}
	if c.proc.alive {
		r.promised = c.proc.open
	}
	r.tries.commit(r, epoch)
}

// signals: rules 6 and 7.
func (r *rules) signals(before State, ev Event, a Signal) {
	g, s := before.gen(a.Epoch), &r.w.shell.state
	if g == nil {
		r.broke("every action has its object", "%s to epoch %d, of which nothing lives", a.Signal, a.Epoch)
		return
	}
	if a.Signal == syscall.SIGUSR1 || s.Stage != Running {
		return
	}
	switch {
	case g.uncommitted() || g.Phase == Removing:
		r.broke("rule 7: no signal to a newcomer", "%s to epoch %d", a.Signal, a.Epoch)
	case g.Phase == Serving && r.hangs(ev, a):
		r.lost, r.pardons[r.w.shell.children[a.Epoch].proc.pid] = true, "it hangs"
	case g.Phase == Serving:
		r.broke("rule 1: the serving epoch serves", "%s to epoch %d", a.Signal, a.Epoch)
	case !g.Limit:
		r.broke("rule 6: only Envoy ends a parent where there is UDP or no relay", "%s to epoch %d", a.Signal, a.Epoch)
	case g.Phase == Draining && s.serving() == nil: // what was told to end before may be killed
		r.broke("rule 6: a successor answers for a parent that is ended", "%s to epoch %d, and nobody serves", a.Signal, a.Epoch)
	}
	if c := r.w.shell.children[a.Epoch]; c != nil && c.proc != nil && before.Ready != nil && before.Ready.Want.Force || s.Ready != nil && s.Ready.Want.Force {
		r.pardons[c.proc.pid] = "force"
	}
}

// hangs is the one reason to kill a serving epoch: it answers nobody (perhaps as
// it is dead), or has
// only just begun to again.
func (r *rules) hangs(ev Event, a Signal) bool {
	e, asked := ev.Is.(Asked)
	c := r.w.shell.children[a.Epoch]
	if !asked || e.Answers || a.Signal != syscall.SIGKILL || c == nil || c.proc == nil {
		return false
	}
	return !c.proc.alive || c.proc.deaf() || r.w.now < c.proc.awake+guardTime
}

func (r *rules) replies(a Reply) {
	for _, w := range a.Waiters {
		if !r.owed[w] {
			r.broke("exactly one answer", "caller %d is answered again: %s", w, a.Result.Outcome)
		}
		delete(r.owed, w)
		r.answers[w] = a.Result
	}
}
