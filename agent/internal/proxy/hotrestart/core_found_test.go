package hotrestart

import "testing"

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
