package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
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
	alarm    int       // the newest timer
	lookouts int       // the newest lookout
	found    *simEnvoy // by the newest survey
	older    [envoy.Seats]*simEnvoy
	guarded  *simChild

	name        string
	wall        time.Duration // what its program's clock began with
	dead        bool          // SIGKILL
	over        bool          // it has come to its end
	pausedUntil time.Duration // its process is stopped until then
	conduct
}

// simInput is a bootstrap and a binary that were checked together.
type simInput struct {
	boot *bootstrap
	mode Mode
	peer *simEnvoy // whom it was prepared to follow
}

// start is a new supervisor.
func (w *world) start(name string) *simShell {
	s := &simShell{
		w: w, name: name, wall: w.wall, rng: dice(w.seed, 3+1000*len(w.shells)),
		children: map[int]*simChild{}, inputs: map[int]*simInput{}, statuses: map[int]string{},
	}
	s.state.Limits = w.limits
	w.shells = append(w.shells, s)
	s.ours(0, func() { s.step(Triggered{By: TriggerStart}) })
	return s
}

// ours does something later in the supervisor's own process, which can be
// stopped: then all that is overdue happens, in order, when it goes on.
func (s *simShell) ours(d time.Duration, do func()) { s.w.enter(d, s, do) }

func (s *simShell) step(is any) { s.apply(Event{s.clock(s.w.now), is}) }

// post brings an event of background work to the owner, who may be busy; then
// is what the poster does once it was taken.
func (s *simShell) post(is any, then func()) {
	at := s.w.now
	s.ours(s.busyFor(), func() {
		s.apply(Event{s.clock(at), is})
		if then != nil {
			then()
		}
	})
}

// report is post of what a child has come to. What is still to be said of one
// that was released must not be taken for the next of its number (rule 10).
func (s *simShell) report(c *simChild, is any, then func()) {
	wait := s.busyFor()
	s.ours(wait, func() {
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
	if s.state.Stage == Done || s.dead {
		return
	}
	epoch, ok := s.state.atStake(ev.Is, ev.At)
	switch {
	case !ok || !s.followed(epoch):
	case s.state.newcomer() != nil:
		if c := s.children[epoch]; c.proc != nil && c.proc.alive && s.follower(c, epoch+1) {
			s.step(Followed{epoch})
		}
	default:
		n := s.w.kernel.names[epoch%envoy.Seats]
		s.step(Sighted{Epoch: epoch + 1, Lives: true, Relay: n != nil && n.taken != nil && !n.timed})
	}
	before := s.state
	var actions []Action
	s.state, actions = s.w.decide(s.state, ev)
	s.observe(ev.Is)
	for _, a := range actions {
		s.w.rules.action(s, before, ev, a)
		s.perform(a)
	}
	s.w.rules.decided(s, before, ev)
	s.arm()
	if s.over {
		s.tidy()
	}
}

func (s *simShell) observe(is any) {
	switch e := is.(type) {
	case Exited:
		s.gone(e.Epoch)
	case Removed:
		s.release(e.Epoch)
	case Launched:
		s.outlived(e.Epoch)
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
	s.ours(max(wake.Sub(s.clock(s.w.now)), 0), func() {
		if alarm != s.alarm {
			return
		}
		s.step(Tick{})
		if next := s.state.Wake(); !next.IsZero() && !next.After(s.clock(s.w.now)) && s.state.Stage != Done {
			s.w.rules.broke("no spinning", "after a tick the state wants to be woken %s ago", s.clock(s.w.now).Sub(next))
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
		if !s.newerThan(a.Epoch) {
			s.w.kernel.beat = &coordination.Heartbeat{Epoch: a.Epoch}
		}
		if n := s.w.kernel.names[a.Epoch%envoy.Seats]; n != nil { // else it is dead, and another one has tidied up
			n.committed = true
		}
		s.children[a.Epoch].asParent.meet()
	case Withdraw:
		s.marker = false
	case Adopt:
		s.adopt(a)
	case Lookout:
		s.lookout(a.Epoch)
	case TakeBack:
		s.with(a.Epoch, a, func(c *simChild) { s.takeBack(c, a.Hasty) })
	case Guard:
		s.with(a.Epoch, a, s.guard)
	case Ask:
		s.with(a.Epoch, a, s.askStats)
	case Count:
		s.with(a.Epoch, a, s.count)
	case DrainAll:
		s.drainAll(a.Until.Sub(s.clock(0)))
	case Signal:
		if c := s.children[a.Epoch]; c != nil && c.proc != nil {
			if c.ofParent != nil && c.relay != nil && a.Signal == syscall.SIGTERM {
				c.relay.logic.Spare()
			}
			c.proc.signal(a.Signal)
		}
	case Forget:
		s.release(a.Epoch)
	case Replace:
		s.replace()
	case Log:
		if s.w.story != nil {
			s.w.tell(s.name, "%s%s", a.Text, attrs(a.Attrs))
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
	c.committed, s.older = true, c.older
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
	if c.foreign {
		return
	}
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
