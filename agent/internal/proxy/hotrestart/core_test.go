package hotrestart

import (
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestAHandoffIsPreparedCommittedReleased(t *testing.T) {
	s := newScript(t).serving(0)
	s.on(Triggered{By: TriggerConfig}).does(Read{})
	s.good(ModeRelay).does(Launch{Epoch: 1}).doesNo(Commit{})
	s.on(Launched{Epoch: 1, Pid: 7}).does(Watch{1})
	s.on(WentLive{1}).doesNo(Commit{}, Publish{})
	s.on(Verified{1}).does(Commit{1}, Publish{1}).doesNo(Signal{})
	s.after(time.Second).on(Counted{0, 3}).doesNo(Signal{})
	s.on(Counted{0, 0}).doesNo(Signal{}) // once is not idle
	s.on(Counted{0, 1}).on(Counted{0, 0}).doesNo(Signal{})
	s.on(Counted{0, 0}).does(Signal{Signal: syscall.SIGTERM})
	s.on(Exited{Epoch: 0, Status: "exit code 0"}).does(Forget{}).doesNo(Withdraw{})
}

func TestRule1AFailedHandoffLeavesTheServingEpochServingAndTheNextPossible(t *testing.T) {
	for name, fail := range map[string]func(*script){
		"refused":    func(s *script) { s.on(Prepared{ID: s.state.Reading.ID, Failed: &Refusal{Step: "validate", Code: 3}}) },
		"no fork":    func(s *script) { s.good(ModeRelay).on(Launched{Epoch: 6, Failed: &Refusal{Step: "start Envoy"}}) },
		"exits":      func(s *script) { s.good(ModeRelay).on(Launched{Epoch: 6}).on(Exited{Epoch: 6, Status: "exit code 1"}) },
		"exits LIVE": func(s *script) { s.good(ModeRelay).on(Launched{Epoch: 6}).on(WentLive{6}).on(Exited{Epoch: 6}) },
		"never LIVE": func(s *script) { s.good(ModeRelay).on(Launched{Epoch: 6}).after(3 * time.Minute).on(Tick{}) },
		"not verified": func(s *script) {
			s.good(ModeRelay).on(Launched{Epoch: 6}).on(WentLive{6}).after(3 * time.Minute).on(Tick{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t).serving(5).on(Triggered{By: TriggerReload, Waiter: 1})
			fail(s)
			s.doesNo(Withdraw{}, Commit{}, Signal{})
			if s.state.newcomer() != nil {
				s.does(TakeBack{Epoch: 6})
				s.on(Removed{Epoch: 6, Log: []string{"why"}})
			}
			s.does(Reply{Waiters: []int{1}}).doesNo(Withdraw{})
			if g := s.state.serving(); g == nil || g.Epoch != 5 || s.state.LastFailure == nil || s.state.Stage != Running {
				t.Fatalf("%+v", s.state)
			}
			// Rule 10: a failed try uses up no number.
			s.on(Triggered{By: TriggerSignal}).good(ModeRelay).does(Launch{Epoch: 6, Parent: 5})
			s.up(6).does(Publish{6})
		})
	}
}

func TestRule2OnlyAVerifiedNewcomerIsCommitted(t *testing.T) {
	missing := Unverified{Epoch: 1, Missing: []string{"listener a"}}
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1}).on(WentLive{1})
	s.on(missing).doesNo(Commit{}).after(time.Second).on(missing).doesNo(Commit{})
	s.after(2 * time.Minute).on(Tick{}).does(TakeBack{Epoch: 1})
	if f := s.state.LastFailure; !strings.Contains(f.Text, "listener a") {
		t.Errorf("the log must say what was missing: %q", f.Text)
	}

	s = newScript(t).serving(0).on(Triggered{By: TriggerReload, Force: true}).good(ModeRelay).on(Launched{Epoch: 1})
	s.on(Unverified{Epoch: 1, Missing: []string{"x"}}).doesNo(Commit{}) // not even LIVE
	s.on(WentLive{1}).doesNo(Commit{}).on(missing).does(Commit{1})
	if h := s.state.LastHandoff; len(h.Forced) != 1 {
		t.Errorf("%+v", h)
	}
}

func TestRule4OneHandoffAtATimeAndTheNewestInputWins(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerConfig}).does(Read{})
	for range 50 {
		s.on(Triggered{By: TriggerSignal}).doesNo(Read{}, Launch{})
	}
	// What arrived while the first was read is read as soon as it has committed.
	s.good(ModeRelay).does(Launch{Epoch: 1})
	s.on(Launched{Epoch: 1}).on(WentLive{1}).on(Triggered{By: TriggerConfig}).doesNo(Launch{})
	s.on(Verified{1}).does(Commit{1})
	reads := 0
	for s.state.Reading != nil || s.state.Wanted != nil {
		reads++
		e := s.state.serving().Epoch + 1
		s.good(ModeRelay).up(e)
		if reads > 3 {
			t.Fatalf("52 triggers have not collapsed: %+v", s.state)
		}
	}
}

func TestRule4AnOldNewcomerGivesWayToANewerInput(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerReload, Waiter: 1}).good(ModeRelay).on(Launched{Epoch: 1})
	s.after(5 * time.Second).on(Triggered{By: TriggerConfig, Waiter: 2}).doesNo(Read{})
	if wake := s.state.Wake(); !wake.Equal(s.at.Add(5 * time.Second)) {
		t.Errorf("wakes at %v", wake)
	}
	s.after(5 * time.Second).on(Tick{}).does(Read{})
	s.good(ModeRelay).does(TakeBack{Epoch: 1}).doesNo(Launch{})
	s.on(Removed{Epoch: 1}).does(Launch{Epoch: 1}).doesNo(Reply{})
	s.up(1).does(Reply{Waiters: []int{2, 1}})
}

func TestRule4TheSameInputDoesNotReplaceANewcomer(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerConfig}).content("x", ModeRelay).on(Launched{Epoch: 1}).on(WentLive{1})
	s.on(Triggered{By: TriggerReload, Force: true, Waiter: 9}).does(Read{})
	s.content("x", ModeRelay).does(Discard{}).doesNo(TakeBack{})
	s.on(Unverified{1, []string{"cluster a"}}).does(Commit{1}, Reply{Waiters: []int{9}}) // but force counts
}

func TestRule4ForceEndsTheOldestOfThree(t *testing.T) {
	three := func(t *testing.T) *script {
		s := newScript(t).serving(0)
		for e := 1; e <= 2; e++ {
			s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(e)
		}
		return s
	}
	s := three(t).on(Triggered{By: TriggerSignal}).good(ModeRelay).doesNo(Launch{}, Signal{})
	if w := s.state.pending(); w == nil || !strings.Contains(w.WaitsFor, "epoch 0") {
		t.Errorf("status must say what it waits for: %+v", w)
	}
	s.on(Triggered{By: TriggerReload, Force: true}).good(ModeRelay).does(Signal{Signal: syscall.SIGTERM}).doesNo(Launch{})
	s.on(Exited{Epoch: 0}).does(Launch{Epoch: 3, Parent: 2})

	s = three(t).on(Triggered{By: TriggerSignal}).good(ModeRelay)
	s.on(Counted{0, 0}).on(Counted{0, 0}).on(Exited{Epoch: 0}).does(Launch{Epoch: 3})
}

func TestTheNewestInputWinsWhileItWaitsForAGeneration(t *testing.T) {
	s := newScript(t).serving(0)
	for e := 1; e <= 2; e++ {
		s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(e)
	}
	s.on(Triggered{By: TriggerReload, Waiter: 1}).content("old", ModeRelay)
	s.on(Triggered{By: TriggerReload, Waiter: 2}).content("new", ModeRelay).does(Discard{})
	s.on(Exited{Epoch: 0}).does(Launch{Epoch: 3})
	if g := s.state.newcomer(); g.Input.Config != "new" {
		t.Errorf("launched %+v", g.Input)
	}
	s.up(3).does(Reply{Waiters: []int{1, 2}})
}

func TestRule6AParentEndsOnlyIdleOrAtItsLimit(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(Counted{0, -1}).on(Counted{0, -1}).doesNo(Signal{}) // unknown is not zero
	s.after(39 * time.Second).on(Tick{}).doesNo(Signal{})
	s.after(time.Second).on(Tick{}).does(Signal{Signal: syscall.SIGTERM})
	s.after(5 * time.Second).on(Tick{}).does(Signal{Signal: syscall.SIGKILL})
}

func TestRule6InPlainModeAndWithUDPOnlyEnvoyEndsAParent(t *testing.T) {
	for _, mode := range []Mode{ModePlain, ModeUDP} {
		t.Run(mode.String(), func(t *testing.T) {
			s := newScript(t).on(Triggered{By: TriggerStart}).good(mode).up(0)
			s.on(Triggered{By: TriggerSignal}).good(mode).up(1)
			s.on(Counted{0, 0}).on(Counted{0, 0}).after(time.Hour).on(Tick{}).doesNo(Signal{})
			s.on(Triggered{By: TriggerReload, Force: true}).good(mode).doesNo(Launch{}, Signal{}) // waits for the parent
			s.on(Exited{Epoch: 0}).does(Launch{Epoch: 2, Parent: 1})
		})
	}
}

// Fact 4: waiting for such a newcomer would be two minutes in which nothing
// serves.
func TestPlainModeTakesANewcomerBackWhoseParentHasEnded(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).good(ModePlain).on(Launched{Epoch: 0}).on(WentLive{0}).on(Verified{0})
	s.on(Triggered{By: TriggerSignal}).good(ModePlain).on(Launched{Epoch: 1})
	s.on(Exited{Epoch: 0, Status: "signal 9", Code: 137}).does(Withdraw{}, TakeBack{Epoch: 1, Hasty: true})
	s.on(Removed{Epoch: 1})
	if s.state.Stage != Done || s.state.Code != 137 {
		t.Errorf("stage %v, code %d", s.state.Stage, s.state.Code)
	}
}

func TestPlainModeCommitsItselfWhenLive(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).good(ModePlain).on(Launched{Epoch: 0}).on(WentLive{0})
	s.doesNo(Publish{}) // the first epoch has nobody to take over from: verified as ever
	s.on(Verified{0}).does(Publish{}).on(Triggered{By: TriggerSignal}).good(ModePlain).on(Launched{Epoch: 1})
	s.on(WentLive{1}).does(Publish{1}).doesNo(Commit{})
}

func TestUDPIsCommittedBeforeEnvoysTimer(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).good(ModeUDP).up(0)
	s.on(Triggered{By: TriggerSignal}).good(ModeUDP).on(Launched{Epoch: 1}).on(WentLive{1})
	s.after(21 * time.Second).on(Tick{}).does(TakeBack{Epoch: 1})
}

func TestRule8StopRemovesTheNewcomerThenDrainsThenEnds(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(Triggered{By: TriggerReload, Waiter: 4}).good(ModeRelay).on(Launched{Epoch: 2}).on(WentLive{2})
	s.on(Stop{By: "terminated"}).does(Withdraw{}, TakeBack{Epoch: 2}, Reply{Waiters: []int{4}}).doesNo(DrainAll{}, Signal{})
	s.on(Removed{Epoch: 2}).does(DrainAll{Until: s.at.Add(40 * time.Second)}) // what is left of epoch 0's limit
	s.on(Counted{0, 0}).on(Counted{0, 0}).doesNo(Signal{})                    // all end together
	s.on(Drained{}).does(Signal{Epoch: 1, Signal: syscall.SIGTERM}, Signal{Signal: syscall.SIGTERM})
	s.after(5 * time.Second).on(Tick{}).does(Signal{Epoch: 1, Signal: syscall.SIGKILL})
	s.on(Exited{Epoch: 0}).on(Exited{Epoch: 1})
	if s.state.Stage != Done || s.state.Code != ExitOK {
		t.Errorf("%+v", s.state)
	}
}

func TestRule8AlwaysAnEnd(t *testing.T) {
	stops := map[string]func(*script){
		"nothing connected": func(s *script) { s.on(Drained{}) },
		"at the drain time": func(s *script) { s.after(25 * time.Second).on(Tick{}) },
		"second SIGTERM":    func(s *script) { s.on(Stop{}) },
	}
	for name, end := range stops {
		s := newScript(t).serving(3).on(Stop{}).does(DrainAll{})
		end(s)
		s.does(Signal{Epoch: 3, Signal: syscall.SIGTERM}).on(Exited{Epoch: 3})
		if s.state.Stage != Done || s.state.Code != ExitOK {
			t.Errorf("%s: %+v", name, s.state)
		}
	}
	s := newScript(t).on(Triggered{By: TriggerStart}).on(Stop{})
	if s.state.Stage != Done || s.state.Code != ExitOK {
		t.Errorf("before the first fork: %+v", s.state)
	}
	s = newScript(t).on(Triggered{By: TriggerStart}).good(ModeRelay).on(Stop{}).does(TakeBack{})
	s.on(Launched{Epoch: 0}).doesNo(Watch{}).on(Stop{}).does(TakeBack{Hasty: true}).on(Removed{Epoch: 0})
	if s.state.Stage != Done || s.state.Code != ExitOK {
		t.Errorf("before LIVE: %+v", s.state)
	}
}

func TestTheNewestDiesAndAllEnd(t *testing.T) {
	s := newScript(t).serving(1)
	s.on(Exited{Epoch: 1, Status: "signal 11 (SIGSEGV)", Code: 139}).does(Withdraw{})
	if _, first := s.did[0].(Withdraw); !first {
		t.Errorf("the marker goes first: %+v", s.did)
	}
	if s.state.Stage != Done || s.state.Code != 139 || !strings.Contains(s.state.Reason, "SIGSEGV") {
		t.Errorf("%+v", s.state)
	}
}

func TestFact21TheSameEpochAgainWhileItsParentDrains(t *testing.T) {
	crash := Exited{Epoch: 1, Status: "signal 11 (SIGSEGV)", Code: 139}
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(crash).does(Withdraw{}, Forget{1}, Launch{Epoch: 1, Parent: 0, Input: Input{ID: 2, Config: "c2", Binary: "b"}})
	s.on(Counted{0, 0}).on(Counted{0, 0}).after(41 * time.Second).on(Tick{}).doesNo(Signal{}) // nobody answers for it
	s.up(1).does(Publish{1}, Commit{1})
	s.on(Counted{0, 0}).on(Counted{0, 0}).doesNo(Launch{})

	// A crash loop ends: a bounded number of tries.
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	for range maxRespawns {
		s.after(time.Second).on(crash).does(Launch{Epoch: 1, Parent: 0}).up(1)
	}
	s.on(crash).doesNo(Launch{}).does(Signal{Signal: syscall.SIGTERM}).on(Exited{Epoch: 0})
	if s.state.Stage != Done || s.state.Code != 139 {
		t.Errorf("%+v", s.state)
	}

	// A new one that fails counts as a try, and a newer input waits.
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(crash).on(Triggered{By: TriggerConfig}).on(Exited{Epoch: 1}).does(Read{}).on(Removed{Epoch: 1}).does(Launch{Epoch: 1, Parent: 0})
	s.up(1).good(ModeRelay).does(Launch{Epoch: 2, Parent: 1})
}

func TestFact6ALostAdminIsHealedWithTheLastGoodInput(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).content("good", ModeRelay).up(0)
	s.on(Triggered{By: TriggerConfig}).content("bad", ModeRelay).on(Exited{Epoch: 1}).on(Removed{Epoch: 1, TookAdmin: true})
	s.doesNo(Launch{}, Withdraw{})
	if wake := s.state.Wake(); !wake.Equal(s.at.Add(firstHeal)) {
		t.Fatalf("wakes at %v", wake)
	}
	s.after(firstHeal).on(Tick{}).does(Launch{Epoch: 1, Parent: 0, Input: Input{ID: 1, Config: "good", Binary: "b"}})
	s.on(Exited{Epoch: 1}).on(Removed{Epoch: 1}).after(firstHeal).on(Tick{}).doesNo(Launch{}) // the pause grows
	s.after(firstHeal).on(Tick{}).does(Launch{Epoch: 1}).up(1)
	if s.state.Heal != nil || !s.state.Wake().Equal(s.at.Add(testLimits.Parent)) {
		t.Errorf("%+v", s.state)
	}

	// A newcomer that has not touched the admin leaves nothing to heal; and any
	// handoff that commits is a cure.
	s = newScript(t).serving(0).on(Triggered{By: TriggerConfig}).good(ModeRelay).on(Exited{Epoch: 1}).on(Removed{Epoch: 1})
	s.after(time.Hour).on(Tick{}).doesNo(Launch{})
	s.on(Triggered{By: TriggerConfig}).good(ModeRelay).on(Exited{Epoch: 1}).on(Removed{Epoch: 1, TookAdmin: true})
	s.on(Triggered{By: TriggerConfig}).good(ModeRelay).up(1).after(time.Hour).on(Tick{}).doesNo(Launch{})
}

func TestFact4ANewcomerWithARelayOutlivesItsParent(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1})
	s.on(Exited{Epoch: 0, Status: "signal 9 (SIGKILL)", Code: 137}).does(Withdraw{}).doesNo(TakeBack{})
	s.on(WentLive{1}).on(Verified{1}).does(Publish{1})
	if s.state.Stage != Running || s.state.Code != ExitOK {
		t.Errorf("%+v", s.state)
	}
	// And when it fails, nothing serves: the end, with the first cause's code.
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1})
	s.on(Exited{Epoch: 0, Code: 137}).on(Exited{Epoch: 1}).does(TakeBack{Epoch: 1}).on(Removed{Epoch: 1})
	if s.state.Stage != Done || s.state.Code != 137 {
		t.Errorf("%+v", s.state)
	}
}

func TestTheFirstStartFailsWithItsOwnCode(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).on(Prepared{ID: 1, Failed: &Refusal{Step: "validate", Text: "no", Code: ExitBootstrap}})
	if s.state.Stage != Done || s.state.Code != ExitBootstrap {
		t.Errorf("%+v", s.state)
	}
	s = newScript(t).on(Triggered{By: TriggerStart}).good(ModeRelay).on(Launched{Epoch: 0}).on(Exited{Epoch: 0, Status: "exit code 1", Code: ExitNewest})
	s.does(TakeBack{}).on(Removed{Epoch: 0})
	if s.state.Stage != Done || s.state.Code != ExitFirstEpoch {
		t.Errorf("%+v", s.state)
	}
}

func TestTheSameContentIsNoReasonToRestart(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).content("a", ModeRelay).up(0)
	s.on(Triggered{By: TriggerConfig}).content("a", ModeRelay).does(Discard{}).doesNo(Launch{})
	s.on(Triggered{By: TriggerSignal}).content("a", ModeRelay).does(Launch{Epoch: 1}) // but asked is asked
}

func TestFact22SIGUSR1WaitsForTheFirstAnswer(t *testing.T) {
	s := newScript(t).on(Triggered{By: TriggerStart}).good(ModeRelay).on(Launched{Epoch: 0}).on(Reopen{}).doesNo(Signal{})
	s.on(Answered{0}).does(Signal{Signal: syscall.SIGUSR1}).on(Answered{0}).doesNo(Signal{})
	s.on(WentLive{0}).on(Verified{0}).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1}).on(Answered{1}).on(WentLive{1}).on(Verified{1})
	s.on(Reopen{}).does(Signal{Epoch: 1, Signal: syscall.SIGUSR1})
	if len(s.did) != 2 {
		t.Errorf("a draining epoch still writes its log: %+v", s.did)
	}
}

func TestAnEnvoyThatAnswersNowhereIsEnded(t *testing.T) {
	s := newScript(t).serving(2).on(Silenced{Epoch: 2})
	if wake := s.state.Wake(); !wake.Equal(s.at.Add(testLimits.Silent)) {
		t.Fatalf("wakes at %v", wake)
	}
	s.after(testLimits.Silent).on(Tick{}).does(Ask{2}).doesNo(Signal{})
	s.on(Triggered{By: TriggerSignal}).good(ModeRelay).doesNo(Launch{}) // the answer's name would be the newcomer's
	s.on(Asked{Epoch: 2}).does(Signal{Epoch: 2, Signal: syscall.SIGKILL})
}

func TestASilentAdminAloneEndsNobody(t *testing.T) {
	s := newScript(t).serving(2).on(Silenced{Epoch: 2}).after(testLimits.Silent).on(Tick{}).does(Ask{2})
	s.on(Asked{Epoch: 2, Answers: true}).does(Log{Level: slog.LevelWarn}).doesNo(Signal{})
	s.after(testLimits.Silent).on(Tick{}).does(Ask{2}).on(Asked{Epoch: 2, Answers: true}).doesNo(Log{}, Signal{}) // said once
	s.on(Silenced{Epoch: 2, Ends: true}).after(time.Hour).on(Tick{}).doesNo(Ask{})

	// In a handoff it is dark, and its hot-restart socket has another to answer.
	s = newScript(t).serving(2).on(Silenced{Epoch: 2}).on(Triggered{By: TriggerSignal}).good(ModeRelay)
	s.after(testLimits.Silent).on(Tick{}).doesNo(Ask{})
	// It answers again just when it is asked.
	s = newScript(t).serving(2).on(Silenced{Epoch: 2}).after(testLimits.Silent).on(Tick{}).on(Silenced{Epoch: 2, Ends: true})
	s.on(Asked{Epoch: 2}).doesNo(Signal{})
}
