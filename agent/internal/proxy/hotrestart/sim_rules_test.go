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

	promised listeners         // what clients may rely on, since the last commit
	faults   int               // that were done to processes
	owed     map[int]*simShell // callers of reload that have no answer
	answers  map[int]Result
	pardons  map[int]string // why a pid was ended before its time, with right
	newest   *simShell      // who committed last
	dark     string         // why nobody need accept until the next commit; "": somebody must
}

// conduct is what one supervisor is judged by.
type conduct struct {
	lost      bool          // a committed epoch has ended by a fault or by itself
	excused   time.Duration // it was stopped for so long, in all
	stopAsked time.Duration // zero: not yet
	hurried   time.Duration
	tries     attempts
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
	for _, s := range r.w.living() {
		if s.state.Stage == Running {
			r.running(s)
		}
	}
	if r.w.kubelet != nil {
		r.answering()
	}
}

// answering: a node of pods answers throughout. Each commit ends all excuses.
func (r *rules) answering() {
	if r.dark == "" && !r.excused() && r.promised&1 != 0 && len(r.w.kernel.accepting(1)) == 0 {
		r.broke("rule 1: the node answers throughout", "nobody accepts, and nobody was hurt since the last commit")
	}
}

// orphans: who is a dead successor's parent serves again (rule 11), from its own
// Envoy if that one still drains.
func (r *rules) orphans(dead *simEnvoy) {
	for _, s := range r.w.living() {
		for _, c := range s.children {
			if s == dead.owner || c.foreign || c.proc == nil || !c.proc.alive || c.epoch+1 != dead.epoch {
				continue
			}
			if b := c.input.boot; b.dynamic || b.slow > 0 || b.flaw != flawNone || c.proc.step != stepLive || r.w.now < r.w.slowUntil {
				continue
			}
			hurt, since := r.faults, r.w.now
			r.by(s, r.w.now+15*time.Second, "rule 11: orphaned, it serves again", func() bool {
				slept := c.proc.stopped || c.proc.awake > 0 && r.w.now-c.proc.awake < 15*time.Second
				return len(r.w.kernel.accepting(1)) > 0 || s.state.Stage != Running || r.faults > hurt || !c.proc.alive || slept || r.w.user.checkUntil > since
			})
		}
	}
}

func (r *rules) mayBeDark(why string) {
	if r.dark == "" {
		r.dark = why
	}
}

// hasChild tells whether a committed epoch has come after one, whose relay answers.
func (s *State) hasChild(g *Generation) bool {
	return s.where(func(c *Generation) bool { return c.Epoch > g.Epoch && (c.Phase == Serving || c.Phase == Draining) }) != nil
}

// nothingLeft is asked when all pods have gone.
func (r *rules) nothingLeft() {
	k := &r.w.kernel
	for seat := range k.names {
		if k.names[seat] != nil || k.links[seat] != nil || k.holder[seat] != nil {
			r.broke("rule 8: nothing is left", "names of seat %d", seat)
		}
	}
	if len(k.procs) > 0 || k.segment.exists || k.beat != nil {
		r.broke("rule 8: nothing is left", "%d processes, segment %t, heartbeat %t", len(k.procs), k.segment.exists, k.beat != nil)
	}
}

func (r *rules) running(s *simShell) {
	k := &r.w.kernel
	if r.w.kubelet == nil && k.segment.flag && k.initializing() == nil && s.state.heir() != nil && s.state.newcomer() == nil {
		r.broke("fact 2: the flag is repaired", "nobody initialises, and it is set")
	}
	r.reachable(s)
}

// reachable: while an epoch serves, somebody accepts at each promised listener.
func (r *rules) reachable(s *simShell) {
	g := s.state.ours()
	if g == nil {
		return
	}
	c := s.children[g.Epoch]
	if c == nil || c.proc == nil || !c.proc.alive || r.excused() {
		return
	}
	if r.w.ownAdmin && !c.proc.admin {
		r.broke("fact 23: with an admin of its own no epoch loses it", "epoch %d has", g.Epoch)
	}
	if r.w.kubelet != nil {
		return // somebody else's may have taken over, and ended, since it last looked
	}
	if n := s.state.newcomer(); r.w.plain && (s.state.Heal != nil || n != nil && n.Phase == Removing) {
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
func (r *rules) decided(s *simShell, before State, ev Event) {
	st := &s.state
	serves := st.ours() != nil && st.Stage == Running
	if s.marker != serves {
		r.broke("rule 13: the marker tells the truth", "marker %t, but serving %t in stage %d", s.marker, st.ours() != nil, st.Stage)
	}
	s.lost = s.lost || st.Orphaned
	if len(st.Gens) > 3 {
		r.broke("at most three generations", "%d", len(st.Gens))
	}
	if _, stop := ev.Is.(Stop); stop {
		r.stopping(s, before)
	}
	if st.Stage == Done {
		r.ended(s)
		s.over = true
		r.w.over = r.w.kubelet == nil
	}
}

// action is asked before an action is carried out.
func (r *rules) action(s *simShell, before State, ev Event, a Action) {
	switch a := a.(type) {
	case Launch:
		r.launches(s, a)
	case Commit:
		r.commits(s, a.Epoch)
	case Publish:
		r.publishes(s, a.Epoch)
	case Signal:
		r.signals(s, before, ev, a)
	case TakeBack:
		if r.w.plain { // it may have committed itself a moment ago
			r.mayBeDark(s.name + " takes a newcomer back that has no relay")
		}
	case Withdraw:
		if _, exited := ev.Is.(Exited); !exited && s.state.Stage == Running && !s.state.succeeded() && !s.state.Orphaned {
			r.broke("rule 13: the marker stays while an epoch serves", "withdrawn at %T", ev.Is)
		}
	case Reply:
		r.replies(a)
	}
}

// launches: rule 10, a number follows from the living; rule 4, one at a time.
func (r *rules) launches(s *simShell, a Launch) {
	if s.state.Stage != Running {
		r.broke("no fork while stopping", "epoch %d", a.Epoch)
	}
	newest := -1
	for i := range s.state.Gens {
		if g := &s.state.Gens[i]; !g.uncommitted() && g.Phase != Removing {
			newest = max(newest, g.Epoch)
		}
	}
	if a.Epoch != newest+1 {
		r.broke("rule 10: the next number", "epoch %d is launched, the newest living one is %d", a.Epoch, newest)
	}
	for _, p := range r.w.kernel.procs {
		if p.owner == s && p.epoch >= a.Epoch {
			r.broke("rule 4: one handoff at a time", "epoch %d is launched, %d lives", a.Epoch, p.epoch)
		}
	}
	s.tries.launch(r, s, a)
}

// commits is rule 2, of the newcomer as it is and not as anybody saw it.
func (r *rules) commits(s *simShell, epoch int) {
	c, g := s.children[epoch], s.state.gen(epoch)
	if c == nil || c.proc == nil {
		r.broke("rule 2: only the verified is committed", "epoch %d has no process", epoch)
		return
	}
	p := c.proc
	needs := c.want && p.boot.dynamic && !s.followed(epoch) // its parent had it when it was asked
	switch {
	case p.step != stepLive:
		r.broke("rule 2: only the verified is committed", "epoch %d is not LIVE but %s", epoch, p.step)
	case needs && !p.dynamic && !g.Want.Force:
		r.broke("rule 2: only the verified is committed", "epoch %d lacks the dynamic listener", epoch)
	}
}

// publishes: the world learns of an epoch once it is committed.
func (r *rules) publishes(s *simShell, epoch int) {
	c := s.children[epoch]
	if c == nil || c.proc == nil {
		r.broke("rule 13: published once committed", "epoch %d has no process", epoch)
		return
	}
	if c.relay != nil && !c.relay.committed {
		r.broke("rule 13: published once committed", "epoch %d is not committed", epoch)
	}
	if c.proc.alive {
		r.promised, r.dark = c.proc.open, ""
	}
	r.newest = s
	s.tries.commit(r, epoch)
}

// signals: rules 6 and 7.
func (r *rules) signals(s *simShell, before State, ev Event, a Signal) {
	g := before.gen(a.Epoch)
	if g == nil {
		r.broke("every action has its object", "%s to epoch %d, of which nothing lives", a.Signal, a.Epoch)
		return
	}
	if g.Foreign {
		r.broke("another supervisor's epoch is never touched", "%s to epoch %d", a.Signal, a.Epoch)
		return
	}
	if a.Signal == syscall.SIGUSR1 || s.state.Stage != Running {
		return
	}
	switch {
	case g.uncommitted() || g.Phase == Removing:
		r.broke("rule 7: no signal to a newcomer", "%s to epoch %d", a.Signal, a.Epoch)
	case g.Phase == Serving && r.hangs(s, ev, a):
		s.lost, r.pardons[s.children[a.Epoch].proc.pid] = true, "it hangs"
	case g.Phase == Serving:
		r.broke("rule 1: the serving epoch serves", "%s to epoch %d", a.Signal, a.Epoch)
	case !g.Limit:
		r.broke("rule 6: only Envoy ends a parent where there is UDP or no relay", "%s to epoch %d", a.Signal, a.Epoch)
	case g.Phase == Draining && !before.hasChild(g) && !s.state.hasChild(g) && !s.state.succeeded(): // what was told to end before may be killed
		r.broke("rule 6: a successor answers for a parent that is ended", "%s to epoch %d, the newest", a.Signal, a.Epoch)
	}
	if c := s.children[a.Epoch]; c != nil && c.proc != nil && before.Ready != nil && before.Ready.Want.Force || s.state.Ready != nil && s.state.Ready.Want.Force {
		r.pardons[c.proc.pid] = "force"
	}
}

// hangs is the one reason to kill a serving epoch: it answers nobody (perhaps as
// it is dead), or has
// only just begun to again.
func (r *rules) hangs(s *simShell, ev Event, a Signal) bool {
	e, asked := ev.Is.(Asked)
	c := s.children[a.Epoch]
	if !asked || e.Answers || a.Signal != syscall.SIGKILL || c == nil || c.proc == nil {
		return false
	}
	return !c.proc.alive || c.proc.deaf() || r.w.now < c.proc.awake+guardTime
}

func (r *rules) replies(a Reply) {
	for _, w := range a.Waiters {
		if r.owed[w] == nil {
			r.broke("exactly one answer", "caller %d is answered again: %s", w, a.Result.Outcome)
		}
		delete(r.owed, w)
		r.answers[w] = a.Result
	}
}
