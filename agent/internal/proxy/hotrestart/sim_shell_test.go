package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// simShell carries out what next decides, as shell does: everything takes time,
// comes back as an event, and can fail.
type simShell struct {
	w        *world
	rng      *rand.Rand
	state    State
	children map[int]*simChild
	inputs   map[int]*simInput
	statuses map[int]string // how a pid has ended
	marker   bool
	nextWait int
	alarm    int // the newest timer
	guarded  *simChild
}

// simInput is a bootstrap and a binary that were checked together.
type simInput struct {
	boot *bootstrap
	mode Mode
}

func newSimShell(w *world) *simShell {
	s := &simShell{
		w: w, rng: dice(w.seed, 3),
		children: map[int]*simChild{}, inputs: map[int]*simInput{}, statuses: map[int]string{},
	}
	s.state.Limits = w.limits
	w.ours(0, func() { s.step(Triggered{By: TriggerStart}) })
	return s
}

func (s *simShell) step(is any) { s.apply(Event{s.w.clock(s.w.now), is}) }

// post brings an event of background work to the owner, who may be busy; then
// is what the poster does once it was taken.
func (s *simShell) post(is any, then func()) {
	ev := Event{s.w.clock(s.w.now), is}
	s.w.ours(s.busyFor(), func() {
		s.apply(ev)
		if then != nil {
			then()
		}
	})
}

// report is post of what a child has come to. What is still to be said of one
// that was released must not be taken for the next of its number (rule 10).
func (s *simShell) report(c *simChild, is any, then func()) {
	wait := s.busyFor()
	s.w.ours(wait, func() {
		if s.children[c.epoch] == c {
			s.step(is)
		}
		if then != nil {
			then()
		}
	})
}

// busyFor is how long the owner has other things to do.
func (s *simShell) busyFor() time.Duration {
	wait := s.w.between(s.rng, 10*time.Microsecond, 3*time.Millisecond)
	if s.rng.IntN(50) == 0 {
		wait *= 60
	}
	return wait
}

// apply is the owner's turn.
func (s *simShell) apply(ev Event) {
	if s.state.Stage == Done {
		return
	}
	before := s.state
	var actions []Action
	s.state, actions = s.w.decide(s.state, ev)
	s.observe(ev.Is)
	for _, a := range actions {
		s.w.rules.action(before, ev, a)
		s.perform(a)
	}
	s.w.rules.decided(before, ev)
	s.arm()
}

func (s *simShell) observe(is any) {
	switch e := is.(type) {
	case Exited:
		if c := s.children[e.Epoch]; c != nil && c.launched && c.asParent != nil {
			c.asParent.isGone()
		}
	case Removed:
		s.release(e.Epoch)
	}
}

// arm sets the timer to what the state wants. One that wants a time which has
// passed, right after a tick, would keep a CPU busy until something happens.
func (s *simShell) arm() {
	wake := s.state.Wake()
	s.alarm++
	if wake.IsZero() || s.state.Stage == Done {
		return
	}
	alarm := s.alarm
	s.w.ours(max(wake.Sub(s.w.clock(s.w.now)), 0), func() {
		if alarm != s.alarm {
			return
		}
		s.step(Tick{})
		if next := s.state.Wake(); !next.IsZero() && !next.After(s.w.clock(s.w.now)) && s.state.Stage != Done {
			s.w.rules.broke("no spinning", "after a tick the state wants to be woken %s ago", s.w.clock(s.w.now).Sub(next))
		}
	})
}

func (s *simShell) perform(a Action) {
	switch a := a.(type) {
	case Read:
		s.read(a)
	case Discard:
		s.discard(a.Input.ID)
	case Launch:
		s.launch(a)
	case Watch:
		s.with(a.Epoch, a, s.watchNewcomer)
	case Commit:
		s.with(a.Epoch, a, s.commit)
	case Publish:
		s.marker = true
	case Withdraw:
		s.marker = false
	case TakeBack:
		s.with(a.Epoch, a, func(c *simChild) { s.takeBack(c, a.Hasty) })
	case Guard:
		s.with(a.Epoch, a, s.guard)
	case Ask:
		s.with(a.Epoch, a, s.askStats)
	case Count:
		s.with(a.Epoch, a, s.count)
	case DrainAll:
		s.drainAll(a.Until.Sub(s.w.clock(0)))
	case Signal:
		if c := s.children[a.Epoch]; c != nil && c.proc != nil {
			c.proc.signal(a.Signal)
		}
	case Forget:
		s.release(a.Epoch)
	case Log:
		if s.w.story != nil {
			s.w.tell("supervisor", "%s%s", a.Text, attrs(a.Attrs))
		}
	}
}

// with is for actions that the shell can't carry out without a child: it would
// panic.
func (s *simShell) with(epoch int, a Action, do func(*simChild)) {
	c := s.children[epoch]
	if c == nil {
		s.w.rules.broke("every action has its object", "%T of epoch %d, of which the shell knows nothing", a, epoch)
		return
	}
	do(c)
}

func (s *simShell) commit(c *simChild) {
	c.committed = true
	if c.relay != nil {
		c.relay.commit()
	}
	s.w.user.reached(c.proc, stepCommitted)
}

// discard frees an input that nobody needs.
func (s *simShell) discard(id int) {
	if !s.state.needs(id) {
		delete(s.inputs, id)
	}
}

// release frees what a dead child held.
func (s *simShell) release(epoch int) {
	c := s.children[epoch]
	if c == nil {
		return
	}
	delete(s.children, epoch)
	c.over = true
	s.tearDown(c)
	for id := range s.inputs {
		if s.inputs[id] == c.input {
			s.discard(id)
			return
		}
	}
}

// attrs renders what a log line carries.
func attrs(kv []any) string {
	var b strings.Builder
	for i := 0; i+1 < len(kv); i += 2 {
		if text := fmt.Sprint(kv[i+1]); text != "" {
			fmt.Fprintf(&b, " %v=%s", kv[i], text)
		}
	}
	return b.String()
}
