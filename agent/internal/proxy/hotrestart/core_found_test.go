package hotrestart

import (
	"syscall"
	"testing"
)

// What the simulator found, as plain stories.

// A time at which nothing would be done must not be one to wake for: the owner
// would tick without a pause, a whole CPU, until something else happens.
func TestTheOwnerNeverWakesForNothing(t *testing.T) {
	for name, story := range map[string]func(*testing.T) *script{
		"a parent's limit has passed while nobody serves": func(t *testing.T) *script {
			s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
			return s.on(Exited{Epoch: 1, Code: 139}).on(Launched{Epoch: 1}).after(testLimits.Parent)
		},
		"a parent's limit has passed while a newcomer is removed at the stop": func(t *testing.T) *script {
			s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
			s.on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 2})
			return s.on(Stop{By: "test"}).after(testLimits.Parent)
		},
		"a newcomer is old, and the newer input takes long to read": func(t *testing.T) *script {
			s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1})
			s.after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).does(Read{})
			return s.on(Triggered{By: TriggerConfig})
		},
		"a cure is due while an input is read": func(t *testing.T) *script {
			s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Exited{Epoch: 1})
			return s.on(Removed{Epoch: 1, TookAdmin: true}).on(Triggered{By: TriggerSignal}).after(firstHeal)
		},
		"a cure is due at a stop": func(t *testing.T) *script {
			s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Exited{Epoch: 1})
			return s.on(Removed{Epoch: 1, TookAdmin: true}).on(Stop{By: "test"}).after(firstHeal)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := story(t).on(Tick{})
			if wake := s.state.Wake(); !wake.IsZero() && !wake.After(s.at) {
				t.Errorf("wants to be woken %s ago", s.at.Sub(wake))
			}
		})
	}
}

// A plain newcomer commits itself the moment it is LIVE, and that is seen only
// at the next look: one that gives way then has closed its parent's listeners.
func TestAPlainNewcomerGivesNoWay(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).good(ModePlain).up(0)
	s.on(Triggered{By: TriggerSignal}).good(ModePlain).on(Launched{Epoch: 1})
	s.after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).doesNo(Read{}, TakeBack{})
	if wake := s.state.Wake(); !wake.After(s.at) {
		t.Errorf("wakes at %v", wake)
	}
	s.on(WentLive{1}).does(Publish{1}).does(Read{}) // what came meanwhile is next

	// The first epoch has nobody to take over from, so it may.
	s = newScript(t).on(Triggered{By: TriggerStart}).good(ModePlain).on(Launched{Epoch: 0})
	s.after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).does(Read{})
	s.good(ModePlain).does(TakeBack{Epoch: 0})
}

// A cure that waits when the serving epoch dies is not to be read again: the
// file may hold a worse input by now, which nobody asked for.
func TestACureIsNobodysWish(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Exited{Epoch: 2}).on(Removed{Epoch: 2, TookAdmin: true})
	s.on(Silenced{Epoch: 1}).after(testLimits.Silent).on(Tick{}).does(Ask{1}).doesNo(Launch{}) // it waits for the answer
	if s.state.Ready == nil {
		t.Fatalf("no cure is due: %+v", s.state)
	}
	s.on(Exited{Epoch: 1, Code: 137}).does(Launch{Epoch: 1, Parent: 0}).doesNo(Read{})
	s.up(1).doesNo(Read{}, Launch{})

	// But what somebody else wants as well is.
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(Silenced{Epoch: 1}).after(testLimits.Silent).on(Tick{}).does(Ask{1})
	s.on(Triggered{By: TriggerReload, Waiter: 1}).good(ModeRelay).doesNo(Launch{})
	s.on(Exited{Epoch: 1, Code: 137}).does(Launch{Epoch: 1, Parent: 0})
	s.up(1).good(ModeRelay).does(Launch{Epoch: 2}).up(2).does(Reply{Waiters: []int{1}})
}

// It ended all the same with nobody to answer it: the lookout watched the seat after
// an epoch that had gone, and a new pod's epoch had followed the older one.
func TestAtAStopTheNewestThatIsLeftIsWatched(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(rival(2)).on(drained(2)).on(Exited{Epoch: 1}).on(Stop{}).doesNo(Lookout{})
	s.on(Sighted{Epoch: 2}).does(Lookout{0}, DrainAll{})

	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1).on(Stop{}).doesNo(Lookout{})
	s.on(Exited{Epoch: 1, Code: 139}).does(Lookout{0})
}

// With UDP Envoy's own timer would have ended it, and its second child has a relay,
// which keeps that from it.
func TestAParentWhoseSecondChildHasARelayIsLimitedByUs(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeUDP).up(1)
	s.on(Exited{Epoch: 1, Code: 139}).does(Launch{Epoch: 1, Parent: 0})
	s.on(Launched{Epoch: 1}).after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).good(ModeRelay).does(TakeBack{Epoch: 1})
	s.on(Removed{Epoch: 1}).does(Launch{Epoch: 1}).up(1).doesNo(Signal{}).after(testLimits.Parent).on(Tick{}).does(Signal{Epoch: 0, Signal: syscall.SIGTERM})
}

// The newest one dies, and the newcomer, which would have gone on without it, finds
// its seat taken: whoever sits there may serve, and if not the older epoch, which
// still drains, makes a start at its own next number possible.
func TestANewcomerThatIsBeatenLeavesTheNodeToItsGrandparent(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(Triggered{By: TriggerSignal}).good(ModeRelay).does(Launch{Epoch: 2}).on(Exited{Epoch: 1, Code: 139})
	s.on(Launched{Epoch: 2, Failed: &Refusal{Step: "take the seat", Again: true}}).on(Removed{Epoch: 2})
	s.does(Lookout{0}).doesNo(Launch{}).named("superseded")
	s.on(Sighted{Epoch: 1}).does(Launch{Epoch: 1, Parent: 0}).up(1).does(Publish{1})
}

// Nobody serves, and what is to be started waits for the oldest to end: that one has
// its limit all the same, or both wait for ever.
func TestAGrandparentHasItsLimitWhileNobodyServes(t *testing.T) {
	s := newScript(t).serving(0)
	for e := 1; e <= 2; e++ {
		s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(e)
	}
	s.on(Exited{Epoch: 2, Code: 139}).does(Launch{Epoch: 2, Parent: 1}).on(Launched{Epoch: 2})
	s.after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).good(ModeUDP).does(TakeBack{Epoch: 2})
	s.on(Removed{Epoch: 2}).doesNo(Launch{})
	s.after(testLimits.Parent).on(Tick{}).does(Signal{Epoch: 0, Signal: syscall.SIGTERM})
	s.on(Exited{Epoch: 0}).does(Launch{Epoch: 2, Parent: 1})
}
