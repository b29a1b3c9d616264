package hotrestart

import "time"

// Wake is when the state wants its next Tick; zero means never. It names no
// time at which nothing would be done: the owner would tick without a pause.
func (s State) Wake() time.Time {
	var wake time.Time
	sooner := func(t time.Time) {
		if !t.IsZero() && (wake.IsZero() || t.Before(wake)) {
			wake = t
		}
	}
	for i := range s.Gens {
		g := &s.Gens[i]
		if s.counts(g) {
			sooner(g.Deadline)
		}
		if g.Phase == Serving && s.Stage == Running && !g.SilentFrom.IsZero() && !g.Asking {
			sooner(g.SilentFrom.Add(s.Limits.Silent))
		}
		if g.uncommitted() && (s.Wanted != nil && s.Reading == nil && !s.holds(s.Wanted) || s.Ready != nil) {
			sooner(s.givesWay(g))
		}
	}
	if s.healable() {
		sooner(s.Heal.At)
	}
	if s.Leaving != nil {
		sooner(s.Leaving.Until)
	}
	if s.Stage == Stopping {
		sooner(s.StopBy)
	}
	return wake
}

// givesWay is when an uncommitted newcomer may be taken back for a newer input;
// zero means never. A plain one with a parent commits itself the moment it is
// LIVE, which is seen only later: taken back then, it would leave nobody.
func (s *State) givesWay(g *Generation) time.Time {
	if g.Input.Mode == ModePlain && s.heir() != nil {
		return time.Time{}
	}
	return g.LaunchedAt.Add(s.Limits.GiveWay)
}

// counts tells whether g's deadline means anything now. A draining epoch's
// doesn't while nobody answers for it, and at a stop all end together.
func (s *State) counts(g *Generation) bool {
	switch g.Phase {
	case Starting, Live, Ending:
		return true
	case Draining:
		return s.mayEnd(g)
	}
	return false
}

// mayEnd tells whether a draining epoch may be ended by us now: somebody answers
// in its place (rule 6), and no start depends on it (fact 21).
func (s *State) mayEnd(g *Generation) bool {
	heir := s.heir()
	return g.Phase == Draining && (s.Stage == Running && heir != nil && heir.Epoch != g.Epoch || s.succeeded())
}

// healable tells whether a planned cure may start when its time has come.
func (s *State) healable() bool {
	return s.Heal != nil && s.Stage == Running && s.ours() != nil && s.Rival == nil && s.Leaving == nil &&
		s.Wanted == nil && s.Reading == nil && s.Ready == nil && s.newcomer() == nil
}
