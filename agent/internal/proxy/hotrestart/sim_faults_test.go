package hotrestart

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// decision is next, or something that pretends to be.
type decision = func(State, Event) (State, []Action)

// mistake is a way to break the core on purpose. What it keeps between turns is
// its own, so each run gets a new one.
type mistake struct {
	name string
	make func() decision
	tell func(*world) // breaks the shell instead
}

// changed is a core whose actions are changed on the way.
func changed(change func(before, after State, ev Event, did []Action) []Action) func() decision {
	return func() decision {
		return func(s State, ev Event) (State, []Action) {
			after, did := next(s, ev)
			return after, change(s, after, ev, did)
		}
	}
}

// without drops actions of one type.
func without[T Action](did []Action) []Action {
	return slices.DeleteFunc(did, func(a Action) bool { _, is := a.(T); return is })
}

// first moves actions of one type to the front.
func first[T Action](did []Action) []Action {
	var front, rest []Action
	for _, a := range did {
		if _, is := a.(T); is {
			front = append(front, a)
		} else {
			rest = append(rest, a)
		}
	}
	return append(front, rest...)
}

var mistakes = []mistake{
	{name: "commits at LIVE, unverified (rule 2)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			s, did := next(s, ev)
			if live, ok := ev.Is.(WentLive); ok {
				verified, more := next(s, Event{ev.At, Verified(live)})
				return verified, append(did, more...)
			}
			return s, did
		}
	}},
	{name: "SIGTERM to a newcomer instead of taking it back (rule 7)", make: changed(func(_, _ State, _ Event, did []Action) []Action {
		for i, a := range did {
			if back, ok := a.(TakeBack); ok {
				did[i] = Signal{back.Epoch, syscall.SIGTERM}
			}
		}
		return did
	})},
	{name: "ends the newest parent at its limit while nobody serves (rule 6)", make: changed(func(before, after State, ev Event, did []Action) []Action {
		for _, g := range after.Gens {
			if g.Phase == Draining && after.Stage == Running && after.serving() == nil && g.Limit && !ev.At.Before(g.Deadline) {
				did = append(did, Signal{g.Epoch, syscall.SIGTERM})
			}
		}
		return did
	})},
	{name: "an unknown count is none (rule 6)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			if n, ok := ev.Is.(Counted); ok && n.Connections == unknown {
				ev.Is = Counted{n.Epoch, 0}
			}
			return next(s, ev)
		}
	}},
	{name: "a failed try uses up a number (rule 10)", make: func() decision {
		failed := 0
		return func(s State, ev Event) (State, []Action) {
			s, did := next(s, ev)
			if _, ok := ev.Is.(Removed); ok {
				failed++
			}
			for i, a := range did {
				if l, ok := a.(Launch); ok && failed > 0 && l.Parent >= 0 {
					s.gen(l.Epoch).Epoch += failed
					l.Epoch += failed
					did[i], failed = l, 0
				}
			}
			return s, did
		}
	}},
	{name: "a fourth generation", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			s, did := next(s, ev)
			if s.Ready == nil || s.Stage != Running || s.newcomer() != nil || s.serving() == nil {
				return s, did
			}
			g := Generation{Epoch: s.nextNumber(), Input: s.Ready.Input, Want: s.Ready.Want, LaunchedAt: ev.At, Deadline: ev.At.Add(s.Limits.Handoff)}
			s = s.clone()
			s.Gens, s.Ready = append(s.Gens, g), nil
			return s, append(did, Launch{Epoch: g.Epoch, Parent: g.Epoch - 1, Input: g.Input, Deadline: g.Deadline})
		}
	}},
	{name: "forgets the marker when the serving epoch dies (rule 13)", make: changed(func(_, _ State, ev Event, did []Action) []Action {
		if _, exited := ev.Is.(Exited); exited {
			return without[Withdraw](did)
		}
		return did
	})},
	{name: "publishes before it commits (rule 13)", make: changed(func(_, _ State, _ Event, did []Action) []Action { return first[Publish](did) })},
	{name: "answers a caller twice", make: changed(func(_, _ State, _ Event, did []Action) []Action {
		for _, a := range did {
			if r, ok := a.(Reply); ok {
				return append(did, r)
			}
		}
		return did
	})},
	{name: "answers no caller whose handoff fails", make: changed(func(_, _ State, ev Event, did []Action) []Action {
		if _, removed := ev.Is.(Removed); removed {
			return without[Reply](did)
		}
		return did
	})},
	{name: "forks while it stops", make: changed(func(before, after State, ev Event, did []Action) []Action {
		if _, stop := ev.Is.(Stop); stop && before.Stage == Running && before.Ready != nil {
			return append(did, Launch{Epoch: before.nextNumber(), Parent: before.nextNumber() - 1, Input: before.Ready.Input})
		}
		return did
	})},
	{name: "ignores a second SIGTERM (rule 8)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			if _, stop := ev.Is.(Stop); stop && s.Stage == Stopping {
				return s, nil
			}
			return next(s, ev)
		}
	}},
	{name: "never kills what ignores SIGTERM (rule 8)", make: changed(func(_, _ State, _ Event, did []Action) []Action {
		return slices.DeleteFunc(did, func(a Action) bool { s, is := a.(Signal); return is && s.Signal == syscall.SIGKILL })
	})},
	{name: "waits for ever for a newcomer (rule 2)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			s, did := next(s, ev)
			s = s.clone()
			for i := range s.Gens {
				if s.Gens[i].uncommitted() {
					s.Gens[i].Deadline = time.Time{}
				}
			}
			return s, did
		}
	}},
	{name: "gives up a newcomer whose parent dies (fact 4)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			s, did := next(s, ev)
			if e, ok := ev.Is.(Exited); ok && s.serving() == nil && s.Stage == Running {
				if n := s.newcomer(); n != nil && n.uncommitted() && e.Epoch == n.Epoch-1 {
					return next(s, Event{ev.At, Stop{By: "nobody serves"}})
				}
			}
			return s, did
		}
	}},
	{name: "starts a dead epoch again without end (fact 21)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			s = s.clone()
			for i := range s.Gens {
				s.Gens[i].Respawns = 0
			}
			return next(s, ev)
		}
	}},
	{name: "heals without a pause (fact 6)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			s, did := next(s, ev)
			if s.Heal != nil && s.Heal.Tries > 0 && !s.Heal.At.IsZero() {
				s = s.clone()
				s.Heal.Tries = 0
			}
			return s, did
		}
	}},
	{name: "never heals a lost admin (fact 6)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			switch e := ev.Is.(type) {
			case Removed:
				e.TookAdmin = false
				ev.Is = e
			case Sighted:
				e.AdminLost = false
				ev.Is = e
			}
			return next(s, ev)
		}
	}},
	{name: "no repair of the segment (fact 2)", tell: func(w *world) { w.noRepair = true }},
	{name: "a new program believes the old one's clock", tell: func(w *world) { w.oldClock = true }},
}

// nextNumber is the one after the newest committed epoch.
func (s *State) nextNumber() int {
	newest := -1
	for i := range s.Gens {
		if g := &s.Gens[i]; !g.uncommitted() && g.Phase != Removing {
			newest = max(newest, g.Epoch)
		}
	}
	return newest + 1
}

// podMistakes are those of several supervisors.
var podMistakes = []mistake{
	{name: "an old pod's Envoy that ends is a crash (rule 11)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			if e, ok := ev.Is.(Exited); ok {
				e.Rival = false
				ev.Is = e
			}
			return next(s, ev)
		}
	}},
	{name: "keeps the marker while superseded (rule 13)", make: changed(func(_, after State, ev Event, did []Action) []Action {
		if _, ok := ev.Is.(Sighted); ok && after.Stage == Running {
			return without[Withdraw](did)
		}
		return did
	})},
	{name: "doesn't see that its successor has gone (rule 11)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			if e, ok := ev.Is.(Sighted); ok && !e.Lives {
				ev.Is = Tick{}
			}
			return next(s, ev)
		}
	}},
	{name: "takes nobody for a successor (rule 11)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			if _, ok := ev.Is.(Sighted); ok {
				ev.Is = Tick{}
			}
			return next(s, ev)
		}
	}},
	{name: "ends another pod's epoch (rule 6)", make: changed(func(_, after State, _ Event, did []Action) []Action {
		for _, a := range did {
			if c, ok := a.(Commit); ok {
				if g := after.gen(c.Epoch - 1); g != nil && g.Foreign {
					return append(did, Signal{g.Epoch, syscall.SIGTERM})
				}
			}
		}
		return did
	})},
	{name: "looks for nobody at its start (rule 10)", make: changed(func(_, _ State, _ Event, did []Action) []Action {
		for i, a := range did {
			if r, ok := a.(Read); ok {
				r.Survey = false
				did[i] = r
			}
		}
		return did
	})},
	{name: "starts without looking again once its parent has gone (rule 10)", make: func() decision {
		return func(s State, ev Event) (State, []Action) {
			if p, ok := ev.Is.(Prepared); ok {
				p.Peer = nil
				ev.Is = p
			}
			return next(s, ev)
		}
	}},
}

// mostSchedules is how many may be needed to find a mistake.
const mostSchedules = 20_000

// TestSimulatorFindsBrokenRules breaks the core in ways that somebody could
// really break it: the simulator must see each, and says how soon.
func TestSimulatorFindsBrokenRules(t *testing.T) {
	one, pods := mistakes, podMistakes
	if underRace {
		one, pods = one[:5], pods[1:3]
	}
	t.Run("one supervisor", func(t *testing.T) { allFound(t, one, drawn) })
	t.Run("pods", func(t *testing.T) { allFound(t, pods, drawnPods) })
}

func allFound(t *testing.T, mistakes []mistake, drawn func(uint64) schedule) {
	var table strings.Builder
	for _, m := range mistakes {
		if m.make == nil {
			m.make = func() decision { return next }
		}
		seed, broken := m.found(drawn)
		if broken == nil {
			t.Errorf("%s: not found in %d schedules", m.name, mostSchedules)
			continue
		}
		fmt.Fprintf(&table, "%-62s  %6d  %s\n", m.name, seed, broken.rule)
	}
	t.Logf("broken on purpose, the schedules it took, and the rule that saw it:\n%s", &table)
}

func (m mistake) found(drawn func(uint64) schedule) (schedules uint64, broken *violation) {
	for seed := uint64(1); seed <= mostSchedules; seed++ {
		if v := drawn(seed).play(m.make(), m.tell, nil); v != nil {
			return seed, v
		}
	}
	return 0, nil
}
