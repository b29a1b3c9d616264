package hotrestart

import (
	"syscall"
	"testing"
	"time"
)

// peer answers the read under way: another supervisor's epoch serves.
func (s *script) peer(epoch int, mode Mode) *script {
	s.Helper()
	s.input++
	in := Input{ID: s.state.Reading.ID, Config: "new", Binary: "b", Mode: mode}
	return s.on(Prepared{ID: in.ID, Input: in, Peer: &Peer{Epoch: epoch, Pod: "old"}})
}

// rival is what the lookout tells of another supervisor's epoch with a relay.
func rival(epoch int) Sighted { return Sighted{Epoch: epoch, Lives: true, Relay: true} }

func drained(epoch int) Sighted {
	return Sighted{Epoch: epoch, Lives: true, Relay: true, Drained: true}
}

func (s *script) named(want string) *script {
	s.Helper()
	if got := s.state.name(); got != want {
		s.Errorf("state %q, want %q", got, want)
	}
	return s
}

func (s *script) done(code int) *script {
	s.Helper()
	if s.state.Stage != Done || s.state.Code != code {
		s.Errorf("stage %v, code %d (%s), want the end with %d", s.state.Stage, s.state.Code, s.state.Reason, code)
	}
	return s
}

func TestANewPodTakesOverFromAnothersEpoch(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).does(Read{Survey: true, First: true})
	s.peer(7, ModeRelay).does(Adopt{Epoch: 7}, Launch{Epoch: 8, Parent: 7}).doesNo(Publish{}).named("successor")
	s.on(Launched{Epoch: 8, Pid: 1}).on(WentLive{8}).doesNo(Publish{}, Commit{})
	s.on(Verified{8}).does(Commit{8}, Publish{8}, Lookout{8}).doesNo(Count{}, Signal{})
	// Its own supervisor releases it.
	s.on(Counted{7, 0}).on(Counted{7, 0}).after(time.Hour).on(Tick{}).doesNo(Signal{})
	s.on(Exited{Epoch: 7}).does(Forget{7}).doesNo(Measure{}, Withdraw{})
	if s.state.servingEpoch() != 8 || len(s.state.Gens) != 1 {
		t.Errorf("%+v", s.state.Gens)
	}
}

func TestNobodyIsLookedForWhileOurOwnServe(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal})
	for _, a := range s.did {
		if r, ok := a.(Read); ok && (r.Survey || r.First) {
			t.Errorf("%+v", r)
		}
	}
}

func TestAFailedNewPodLeavesTheNodeToTheOldOne(t *testing.T) {
	for name, fail := range map[string]func(*script){
		"refused": func(s *script) {
			s.on(Prepared{ID: 1, Failed: &Refusal{Step: "validate", Code: ExitBootstrap}}).done(ExitBootstrap)
		},
		"not verified": func(s *script) {
			s.peer(4, ModeRelay).on(Launched{Epoch: 5}).on(WentLive{5}).after(testLimits.Handoff).on(Tick{}).does(TakeBack{Epoch: 5})
			s.on(Removed{Epoch: 5, TookAdmin: true}).done(ExitFirstEpoch)
		},
		"dies": func(s *script) {
			s.peer(4, ModeRelay).on(Launched{Epoch: 5}).on(Exited{Epoch: 5, Code: ExitNewest}).on(Removed{Epoch: 5}).done(ExitFirstEpoch)
		},
		"stopped": func(s *script) {
			s.peer(4, ModeRelay).on(Launched{Epoch: 5}).on(Stop{}).does(TakeBack{Epoch: 5}).doesNo(Forget{})
			s.on(Removed{Epoch: 5}).does(Forget{4}).done(ExitOK)
		},
		"stopped while it waits": func(s *script) { s.on(Awaits{1, "epoch 4 to be committed"}).on(Stop{}).done(ExitOK) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t).on(Triggered{By: TriggerStart})
			fail(s)
			s.doesNo(Signal{}, DrainAll{})
		})
	}
}

func TestANewerInputReplacesANewPodsNewcomer(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).peer(4, ModeRelay).on(Launched{Epoch: 5})
	s.after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).good(ModeRelay).does(TakeBack{Epoch: 5})
	s.on(Removed{Epoch: 5}).does(Launch{Epoch: 5, Parent: 4}).up(5).does(Publish{5})
}

func TestThePredecessorDies(t *testing.T) {
	// Its relay answers for it.
	s := newScript(t).on(Triggered{By: TriggerStart}).peer(4, ModeRelay).on(Launched{Epoch: 5})
	s.on(Exited{Epoch: 4}).does(Forget{4}).doesNo(TakeBack{}).on(WentLive{5}).on(Verified{5}).does(Publish{5})
	// Without a relay nobody does.
	s = newScript(t).on(Triggered{By: TriggerStart}).peer(4, ModePlain).on(Launched{Epoch: 5})
	s.on(Exited{Epoch: 4}).does(TakeBack{Epoch: 5, Hasty: true}).on(Removed{Epoch: 5}).done(ExitFirstEpoch)
	// Between two tries: who lives is asked anew, and nothing is launched blindly.
	s = newScript(t).on(Triggered{By: TriggerStart}).peer(4, ModeRelay).on(Launched{Epoch: 5})
	s.after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).good(ModeRelay)
	s.on(Exited{Epoch: 4}).on(Removed{Epoch: 5}).does(Read{Survey: true}).doesNo(Launch{})
	s.good(ModeRelay).does(Launch{Epoch: 0, Parent: -1})
}

func TestAnotherSupervisorWasFaster(t *testing.T) {
	beaten := Launched{Epoch: 0, Failed: &Refusal{Step: "take the seat", Code: ExitTaken, Again: true}}
	s := newScript(t).on(Triggered{By: TriggerStart}).good(ModeRelay).on(beaten).does(TakeBack{Epoch: 0, Hasty: true})
	s.on(Removed{Epoch: 0}).does(Read{Survey: true}).doesNo(Reply{})
	s.peer(0, ModeRelay).does(Launch{Epoch: 1, Parent: 0}).up(1).does(Publish{1})
	// Not for ever.
	newScript(t).on(Triggered{By: TriggerStart}).good(ModeRelay).after(testLimits.Handoff).on(beaten).on(Removed{Epoch: 0}).done(ExitTaken)
	// One that serves only fails.
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay)
	beaten.Epoch = 1
	s.on(beaten).on(Removed{Epoch: 1}).doesNo(Read{}, Withdraw{})
}

func TestRule11ContestedForksNothingAndServes(t *testing.T) {
	s := newScript(t).serving(2).on(rival(3)).doesNo(Withdraw{}).named("contested")
	s.on(Triggered{By: TriggerReload, Waiter: 1}).doesNo(Read{}, Launch{}, Reply{})
	if w := s.state.pending(); w == nil || w.WaitsFor != "epoch 3 of another pod to take over or to go" {
		t.Errorf("%+v", w)
	}
	s.on(Silenced{Epoch: 2}).after(testLimits.Silent).on(Tick{}).doesNo(Ask{}, Signal{}) // that one has the admin
	s.on(Sighted{Epoch: 3, AdminLost: true}).doesNo(Withdraw{}).does(Read{}).named("preparing")
	if s.state.Heal == nil {
		t.Error("its admin is not healed")
	}
}

func TestRule11SupersededDropsTheMarkerAndReleasesItsEpoch(t *testing.T) {
	s := newScript(t).serving(2).on(rival(3)).on(Triggered{By: TriggerReload, Waiter: 1})
	s.on(drained(3)).does(Withdraw{}, Count{2}, Reply{Waiters: []int{1}}).named("superseded")
	s.on(Triggered{By: TriggerReload, Waiter: 2}).does(Reply{Waiters: []int{2}}).doesNo(Read{})
	s.on(Counted{2, 0}).on(Counted{2, 0}).does(Signal{Epoch: 2, Signal: syscall.SIGTERM})
	s.on(Exited{Epoch: 2}).doesNo(Withdraw{})
	if s.state.Stage != Running {
		t.Error("the supervisor has ended while its successor serves")
	}
	s.on(Stop{}).done(ExitOK)

	newScript(t).serving(2).on(rival(3)).on(drained(3)).after(testLimits.Parent).on(Tick{}).does(Signal{Epoch: 2, Signal: syscall.SIGTERM})
}

// Lesson 4 of the first fleet: any deadline of ours races the successor.
func TestRule6WithoutARelayOnlyTheProtocolEndsAPredecessor(t *testing.T) {
	s := newScript(t).serving(2).on(Sighted{Epoch: 3, Lives: true}).on(Sighted{Epoch: 3, Lives: true, Drained: true}).does(Withdraw{})
	s.on(Counted{2, 0}).on(Counted{2, 0}).after(time.Hour).on(Tick{}).doesNo(Signal{})
	s.on(Stop{}).doesNo(Signal{}, DrainAll{}).on(Stop{}).doesNo(Signal{}).after(time.Hour).on(Tick{}).doesNo(Signal{})
	s.on(Exited{Epoch: 2}).done(ExitOK)
}

func TestRule11ExitZeroIsACrashUnlessASuccessorLives(t *testing.T) {
	s := newScript(t).serving(2).on(Exited{Epoch: 2, Status: "exit code 0", Rival: true}).does(Withdraw{}, Forget{2}).named("superseded")
	if s.state.Stage != Running || s.state.Code != 0 {
		t.Errorf("%+v", s.state)
	}
	newScript(t).serving(2).on(Exited{Epoch: 2, Status: "exit code 0"}).does(Withdraw{}).done(ExitNewest)
	// Our own newcomer at that seat is no rival.
	s = newScript(t).serving(2).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 3})
	s.on(rival(3)).on(drained(3)).doesNo(Withdraw{})
	s.on(Exited{Epoch: 2, Rival: true}).doesNo(TakeBack{}).on(WentLive{3}).on(Verified{3}).does(Publish{3})
}

func TestRule11OrphanedServesAgain(t *testing.T) {
	// From its own epoch, which still drains.
	s := newScript(t).serving(2).on(rival(3)).on(drained(3))
	s.on(Sighted{Epoch: 3}).does(Launch{Epoch: 3, Parent: 2}).named("orphaned")
	s.up(3).does(Publish{3}).doesNo(Withdraw{}).named("draining")
	s.on(Counted{2, 0}).on(Counted{2, 0}).does(Signal{Epoch: 2, Signal: syscall.SIGTERM})

	// From nothing: who lives is asked first.
	s = newScript(t).serving(2).on(rival(3)).on(drained(3)).on(Exited{Epoch: 2})
	s.on(Sighted{Epoch: 3}).does(Read{Survey: true}).doesNo(Launch{})
	s.good(ModeRelay).does(Launch{Epoch: 0, Parent: -1}).up(0).does(Publish{0})

	// From nothing, once its own has ended.
	s = newScript(t).serving(2).on(rival(3)).on(drained(3)).on(Counted{2, 0}).on(Counted{2, 0})
	s.on(Sighted{Epoch: 3}).doesNo(Read{}, Launch{}).on(Exited{Epoch: 2}).does(Read{Survey: true})

	// From an older one that still drains, if its own newest has ended as well.
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(rival(2)).on(drained(2)).on(Exited{Epoch: 1}).on(Sighted{Epoch: 2}).does(Launch{Epoch: 1, Parent: 0}).named("orphaned")

	// Somebody else was faster: superseded by that one.
	s = newScript(t).serving(2).on(rival(3)).on(drained(3)).on(Sighted{Epoch: 3})
	s.on(Launched{Epoch: 3, Failed: &Refusal{Step: "take the seat", Again: true}}).on(Removed{Epoch: 3}).doesNo(Launch{}).named("superseded")

	// The newest input counts, after that.
	s = newScript(t).serving(2).on(rival(3)).on(drained(3)).on(Triggered{By: TriggerConfig}).on(Sighted{Epoch: 3})
	s.up(3).does(Publish{3})
	if s.state.Reading == nil {
		t.Error("a change that was made meanwhile is forgotten")
	}
}

func TestANewPodsEnvoyDiesWhileThePredecessorDrains(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).peer(4, ModeRelay).up(5)
	s.on(Exited{Epoch: 5, Status: "signal 11 (SIGSEGV)", Code: 139}).does(Withdraw{}, Launch{Epoch: 5, Parent: 4})
	s.up(5).does(Publish{5})
	s.on(Exited{Epoch: 4}).on(Exited{Epoch: 5, Code: 139}).doesNo(Launch{}).done(139)
}

func TestRule9AStopWaitsForASuccessor(t *testing.T) {
	waiting := func(t *testing.T) *script {
		s := newScript(t)
		s.state.Limits.Successor = 10 * time.Second
		return s.serving(2).on(Stop{By: "terminated"}).doesNo(Withdraw{}, DrainAll{}).named("waiting")
	}
	s := waiting(t).after(9*time.Second).on(rival(3)).after(testLimits.Handoff-time.Second).on(Tick{}).doesNo(Withdraw{}, DrainAll{})
	s.on(drained(3)).does(Withdraw{}).doesNo(DrainAll{}).named("stopping")
	s.on(Counted{2, 0}).on(Counted{2, 0}).on(Exited{Epoch: 2}).done(ExitOK)

	s = waiting(t)
	if wake := s.state.Wake(); !wake.Equal(s.at.Add(10 * time.Second)) {
		t.Errorf("wakes at %v", wake)
	}
	s.after(10*time.Second).on(Tick{}).does(Withdraw{}, DrainAll{})
	waiting(t).on(Stop{}).does(Withdraw{}, DrainAll{})
	waiting(t).on(Triggered{By: TriggerReload, Waiter: 1}).does(Reply{Waiters: []int{1}}).doesNo(Read{})
	waiting(t).on(Exited{Epoch: 2, Code: 139}).does(Withdraw{}).done(ExitOK)
	waiting(t).on(rival(3)).on(Sighted{Epoch: 3}).after(10 * time.Second).on(Tick{}).does(DrainAll{})
	waiting(t).on(Exited{Epoch: 2, Rival: true}).does(Withdraw{}).done(ExitOK)
}

func TestAStopWhileContestedIsAHandoff(t *testing.T) {
	s := newScript(t).serving(2).on(rival(3)).on(Stop{}).doesNo(Withdraw{}, DrainAll{}).named("waiting")
	s.on(drained(3)).does(Withdraw{}).on(Counted{2, 3}).after(testLimits.Parent).on(Tick{}).does(Signal{Epoch: 2, Signal: syscall.SIGTERM})
	s.on(Exited{Epoch: 2}).done(ExitOK)
	// That one gives up: without --successor-wait nobody else is waited for.
	newScript(t).serving(2).on(rival(3)).on(Stop{}).on(Sighted{Epoch: 3}).does(Withdraw{}, DrainAll{})
	// The successor dies while we stop: the ordinary stop goes on.
	newScript(t).serving(2).on(rival(3)).on(drained(3)).on(Stop{}).on(Sighted{Epoch: 3}).does(DrainAll{})
}
