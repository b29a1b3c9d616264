package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"
)

// TestEveryStateWithEveryEvent walks at random through all events, sensible or
// not, and checks what may never happen. It is seeded by its subtest's name.
func TestEveryStateWithEveryEvent(t *testing.T) {
	for seed := range uint64(3000) {
		walk(t, seed, 400)
	}
}

func FuzzEveryStateWithEveryEvent(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { walk(t, seed, 400) })
}

func walk(t *testing.T, seed uint64, steps int) {
	rng := rand.New(rand.NewPCG(seed, 0))
	w := &walker{T: t, owed: map[int]bool{}, verified: map[int]bool{}}
	state := State{Limits: testLimits}
	state.Limits.Successor = time.Duration(seed%2) * 10 * time.Second
	at := time.Unix(0, 0)
	for step := range steps {
		ev := Event{at, Triggered{By: TriggerStart}}
		if step > 0 {
			ev.Is = w.event(rng, &state)
		}
		before := state.clone()
		w.before(ev.Is)
		next, actions := next(state, ev)
		w.check(before, ev, next, actions)
		if t.Failed() {
			t.Fatalf("seed %d, step %d: %T%+v\nfrom %+v\nto   %+v\nactions %+v", seed, step, ev.Is, ev.Is, before, next, actions)
		}
		if step%50 == 0 {
			w.silentTicks(next, at)
		}
		state = next
		at = at.Add(time.Duration(rng.ExpFloat64() * float64(2*time.Second)))
	}
}

// walker knows what must hold between states.
type walker struct {
	*testing.T
	waiter   int
	owed     map[int]bool // callers that have no answer yet
	verified map[int]bool // newcomers that were, or could be forced or are plain
}

func (w *walker) event(rng *rand.Rand, s *State) any {
	epoch := 0
	if len(s.Gens) > 0 {
		epoch = s.Gens[rng.IntN(len(s.Gens))].Epoch
	}
	id := s.NextID - rng.IntN(2)
	mode := Mode(rng.IntN(8))
	if mode > ModePlain {
		mode = ModeRelay
	}
	switch rng.IntN(20) {
	case 0:
		return Triggered{By: Trigger(1 + rng.IntN(4)), Force: rng.IntN(10) == 0}
	case 1:
		w.waiter++
		w.owed[w.waiter] = true
		return Triggered{By: TriggerReload, Waiter: w.waiter}
	case 2, 3, 4:
		p := Prepared{ID: id, Input: Input{ID: id, Config: fmt.Sprint(rng.IntN(3)), Mode: mode}}
		if r := s.Reading; r != nil && r.Survey && rng.IntN(2) == 0 {
			p.Peer = &Peer{Epoch: rng.IntN(5)}
		}
		return p
	case 5:
		return Prepared{ID: id, Failed: &Refusal{Step: "validate", Code: 3}}
	case 6, 7:
		return Launched{Epoch: epoch, Pid: 1}
	case 8:
		return Launched{Epoch: epoch, Failed: &Refusal{Step: "start", Again: rng.IntN(2) == 0}}
	case 9, 10:
		return WentLive{epoch}
	case 11, 12:
		return Verified{epoch}
	case 13:
		return Unverified{epoch, []string{"x"}}
	case 14:
		return Answered{epoch}
	case 15:
		if g := s.gen(epoch); g != nil && (g.Phase == Serving || g.Phase == Removing) && rng.IntN(10) > 0 {
			return Tick{}
		}
		return Exited{Epoch: epoch, Code: 139, Rival: rng.IntN(3) == 0}
	case 16:
		if g := s.gen(epoch); g == nil || g.Phase != Removing {
			return Tick{} // the shell says so only of what it was told to remove
		}
		return Removed{Epoch: epoch, TookAdmin: rng.IntN(2) == 0}
	case 17:
		return Counted{epoch, rng.IntN(3) - 1}
	case 18:
		if rng.IntN(30) == 0 {
			return Stop{By: "test"}
		}
		return Reopen{}
	}
	switch rng.IntN(10) {
	case 4, 5, 6, 7:
		return w.sighting(rng, s)
	case 0:
		return Drained{}
	case 3:
		return OutOfService{Yes: rng.IntN(2) == 0}
	case 1:
		return Silenced{Epoch: epoch, Ends: rng.IntN(2) == 0}
	case 8:
		return []any{UpgradeWanted{}, UpgradeWanted{}, UpgradeOver{Error: "x"}}[rng.IntN(3)]
	case 9:
		if s.Upgrade == nil || !s.Upgrade.Going {
			return Tick{}
		}
		return TookOver{} // the shell executes at no other time
	case 2:
		return Asked{Epoch: epoch, Answers: rng.IntN(2) == 0}
	}
	return Tick{}
}

// sighting is of the seat after the newest of ours, mostly.
func (w *walker) sighting(rng *rand.Rand, s *State) any {
	epoch := s.servingEpoch() + 1
	if s.Rival != nil && rng.IntN(10) > 0 {
		epoch = s.Rival.Epoch
	}
	if rng.IntN(10) == 0 {
		return Awaits{s.NextID, "something"}
	}
	return Sighted{
		Epoch: epoch, Lives: rng.IntN(4) > 0, Relay: rng.IntN(2) == 0, Drained: rng.IntN(3) == 0, AdminLost: rng.IntN(2) == 0,
	}
}

func (w *walker) before(is any) {
	if v, ok := is.(Verified); ok {
		w.verified[v.Epoch] = true
	}
}

func (w *walker) check(before State, ev Event, after State, actions []Action) {
	w.generations(before, after)
	if wake := after.Wake(); isTick(ev) && !wake.IsZero() && !wake.After(ev.At) && after.Stage != Done {
		w.Errorf("after a tick it wants to be woken %v ago", ev.At.Sub(wake))
	}
	for _, a := range actions {
		w.action(before, ev, after, a)
	}
	if after.Stage == Done {
		if len(after.Gens) > 0 {
			w.Error("done with living epochs")
		}
		if len(w.owed) > 0 {
			w.Errorf("done, and callers %v have no answer", w.owed)
		}
	}
	if after.Stage == Running && len(after.Gens) == 0 && after.Reading == nil && after.Ready == nil && after.Rival == nil {
		w.Error("running, but nothing lives and nothing is on its way")
	}
	if after.Stage == Running && after.own() == 0 && after.foreign() != nil && after.Reading == nil && after.Ready == nil && after.Rival == nil {
		w.Error("another's epoch is held on to, and nothing of ours is on its way")
	}
	if after.Stage >= Closing && after.foreign() != nil {
		w.Error("another's epoch is waited for at the end")
	}
}

// silentTicks: time that passes with nothing new is worth no line, however often
// somebody looks.
func (w *walker) silentTicks(s State, at time.Time) {
	said := map[string]bool{}
	for range 6 {
		at = at.Add(10 * time.Second) // more than any deadline that is set anew
		var actions []Action
		s, actions = next(s, Event{at, Tick{}})
		for _, a := range actions {
			l, ok := a.(Log)
			text := l.Text
			if len(l.Attrs) > 1 { // the epoch, or what is waited for: another one is news
				text += fmt.Sprint(l.Attrs[:2])
			}
			if ok && said[text] {
				w.Errorf("said again at a mere tick: %s", text)
			} else if ok {
				said[text] = true
			}
		}
	}
}

func (w *walker) generations(before, after State) {
	serving, newcomers, seats := 0, 0, map[int]bool{}
	for _, g := range after.Gens {
		if seats[g.Epoch%3] {
			w.Error("two living epochs of the same name (fact 7)")
		}
		seats[g.Epoch%3] = true
		if g.Phase == Serving {
			serving++
		}
		if g.uncommitted() || g.Phase == Removing {
			newcomers++
		}
	}
	if serving > 1 || newcomers > 1 || len(after.Gens) > 3 {
		w.Errorf("%d serve, %d newcomers, %d live", serving, newcomers, len(after.Gens))
	}
	_ = before
}

func (w *walker) action(before State, ev Event, after State, a Action) {
	switch a := a.(type) {
	case Launch:
		w.verified[a.Epoch] = false
		if before.Rival != nil && after.Rival != nil || after.Leaving != nil {
			w.Error("rule 11: a fork while another's epoch is contesting ours, or has superseded it")
		}
		if after.Stage != Running {
			w.Error("a fork while stopping")
		}
	case Replace:
		if after.Stage != Running || after.ours() == nil || after.newcomer() != nil || after.Reading != nil || after.Ready != nil || after.Rival != nil {
			w.Error("the program is replaced in the middle of something")
		}
	case PublishUnready:
		if !after.Out || !w.verified[a.Epoch] && !after.gen(a.Epoch).Want.Force && after.gen(a.Epoch).Input.Mode != ModePlain {
			w.Error("in service and not ready, or not verified")
		}
	case Publish:
		if after.Out {
			w.Error("out of service, and ready")
		}
		g := after.gen(a.Epoch)
		if !w.verified[a.Epoch] && !g.Want.Force && g.Input.Mode != ModePlain {
			w.Error("rule 2: committed without having been verified")
		}
	case Signal:
		g := before.gen(a.Epoch)
		if g == nil {
			w.Errorf("a signal to nobody: %+v", a)
		} else if g.Foreign {
			w.Error("rule 11: a signal to another's epoch")
		} else if a.Signal == syscall.SIGTERM && (g.uncommitted() || g.Phase == Removing) {
			w.Error("rule 7: SIGTERM to a newcomer ends its parent as well")
		} else if a.Signal == syscall.SIGTERM && after.Stage == Running && !(g.Phase == Draining && g.Limit && (before.hasChild(g) || after.hasChild(g) || after.succeeded())) {
			w.Errorf("rule 6: SIGTERM to a %s epoch", g.Phase)
		}
	case Measure:
		if why := unknownMeasure(a); why != "" {
			w.Error(why)
		}
	case Concluded:
		if h := a.Handoff; h.Since.IsZero() || h.At.Before(h.Since) || len(h.Triggers) == 0 {
			w.Errorf("a record without its beginning: %+v", h)
		}
	case Count:
		if g := after.gen(a.Epoch); g != nil && g.Foreign {
			w.Error("rule 11: another's epoch is counted")
		}
	case Withdraw:
		_, exited := ev.Is.(Exited)
		if out, asked := ev.Is.(OutOfService); !exited && after.Stage == Running && !(asked && out.Yes) && !after.succeeded() && !after.Orphaned {
			w.Error("rule 13: withdrawn although the serving epoch lives")
		}
	case Reply:
		for _, waiter := range a.Waiters {
			if !w.owed[waiter] {
				w.Errorf("caller %d is answered twice", waiter)
			}
			delete(w.owed, waiter)
		}
	}
}

func isTick(ev Event) bool { _, ok := ev.Is.(Tick); return ok }
