package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script drives next by hand: a story of events and what must come of them.
type script struct {
	*testing.T
	state State
	at    time.Time
	did   []Action // of the last event
	input int
}

var testLimits = Limits{
	Handoff: 2 * time.Minute, GiveWay: 10 * time.Second, Drain: 25 * time.Second, Parent: 40 * time.Second, Kill: 5 * time.Second,
}

func newScript(t *testing.T) *script {
	s := &script{T: t, at: time.Unix(1_000_000, 0)}
	s.state.Limits = testLimits
	return s
}

func (s *script) on(is any) *script {
	s.Helper()
	before := s.state.clone()
	state, did := next(s.state, Event{s.at, is})
	if !reflect.DeepEqual(before, s.state.clone()) {
		s.Errorf("next changed its argument on %T", is)
	}
	s.state, s.did = state, did
	return s
}

func (s *script) after(d time.Duration) *script { s.at = s.at.Add(d); return s }

// does fails unless the last event had an action like want, by its type and
// those fields that want sets.
func (s *script) does(wants ...Action) *script {
	s.Helper()
	for _, want := range wants {
		if !slices.ContainsFunc(s.did, func(a Action) bool { return like(a, want) }) {
			s.Errorf("no %T%+v among %+v", want, want, s.did)
		}
	}
	return s
}

func (s *script) doesNo(unwanted ...Action) *script {
	s.Helper()
	for _, a := range s.did {
		for _, u := range unwanted {
			if reflect.TypeOf(a) == reflect.TypeOf(u) {
				s.Errorf("did %T%+v", a, a)
			}
		}
	}
	return s
}

// like compares the fields of want that are set.
func like(a, want Action) bool {
	va, vw := reflect.ValueOf(a), reflect.ValueOf(want)
	if va.Type() != vw.Type() {
		return false
	}
	for i := range vw.NumField() {
		if !vw.Field(i).IsZero() && !reflect.DeepEqual(va.Field(i).Interface(), vw.Field(i).Interface()) {
			return false
		}
	}
	return true
}

// good answers the read under way with a new input.
func (s *script) good(mode Mode) *script {
	s.Helper()
	s.input++
	return s.content(fmt.Sprintf("c%d", s.input), mode)
}

func (s *script) content(config string, mode Mode) *script {
	s.Helper()
	if s.state.Reading == nil {
		s.Fatal("nothing is being read")
	}
	return s.on(Prepared{ID: s.state.Reading.ID, Input: Input{ID: s.state.Reading.ID, Config: config, Binary: "b", Mode: mode}})
}

func (s *script) up(epoch int) *script {
	s.Helper()
	return s.on(Launched{Epoch: epoch, Pid: 100 + epoch}).on(WentLive{epoch}).on(Verified{epoch})
}

// serving brings a supervisor to the given epoch, all parents gone.
func (s *script) serving(epoch int) *script {
	s.Helper()
	s.on(Triggered{By: TriggerStart}).good(ModeRelay).up(0)
	for e := 1; e <= epoch; e++ {
		s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(e)
		s.on(Exited{Epoch: e - 1})
	}
	if g := s.state.serving(); g == nil || g.Epoch != epoch || len(s.state.Gens) != 1 {
		s.Fatalf("not serving %d: %+v", epoch, s.state)
	}
	return s
}

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
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).up(1)
	s.on(Exited{Epoch: 1, Status: "signal 11 (SIGSEGV)", Code: 139}).does(Withdraw{}, Signal{Signal: syscall.SIGTERM})
	if _, first := s.did[0].(Withdraw); !first {
		t.Errorf("the marker goes first: %+v", s.did)
	}
	s.on(Exited{Epoch: 0})
	if s.state.Stage != Done || s.state.Code != 139 || !strings.Contains(s.state.Reason, "SIGSEGV") {
		t.Errorf("%+v", s.state)
	}
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
		return Prepared{ID: id, Input: Input{ID: id, Config: fmt.Sprint(rng.IntN(3)), Mode: mode}}
	case 5:
		return Prepared{ID: id, Failed: &Refusal{Step: "validate", Code: 3}}
	case 6, 7:
		return Launched{Epoch: epoch, Pid: 1}
	case 8:
		return Launched{Epoch: epoch, Failed: &Refusal{Step: "start"}}
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
		return Exited{Epoch: epoch, Code: 139}
	case 16:
		if g := s.gen(epoch); g == nil || g.Phase != Removing {
			return Tick{} // the shell says so only of what it was told to remove
		}
		return Removed{Epoch: epoch}
	case 17:
		return Counted{epoch, rng.IntN(3) - 1}
	case 18:
		if rng.IntN(30) == 0 {
			return Stop{By: "test"}
		}
		return Reopen{}
	}
	if rng.IntN(3) == 0 {
		return Drained{}
	}
	return Tick{}
}

func (w *walker) before(is any) {
	if v, ok := is.(Verified); ok {
		w.verified[v.Epoch] = true
	}
}

func (w *walker) check(before State, ev Event, after State, actions []Action) {
	w.generations(before, after)
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
	if after.Stage == Running && len(after.Gens) == 0 && after.Reading == nil && after.Ready == nil {
		w.Error("running, but nothing lives and nothing is on its way")
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
		if after.Stage != Running {
			w.Error("a fork while stopping")
		}
	case Publish:
		g := after.gen(a.Epoch)
		if !w.verified[a.Epoch] && !g.Want.Force && g.Input.Mode != ModePlain {
			w.Error("rule 2: committed without having been verified")
		}
	case Signal:
		g := before.gen(a.Epoch)
		if g == nil {
			w.Errorf("a signal to nobody: %+v", a)
		} else if a.Signal == syscall.SIGTERM && (g.uncommitted() || g.Phase == Removing) {
			w.Error("rule 7: SIGTERM to a newcomer ends its parent as well")
		} else if a.Signal == syscall.SIGTERM && after.Stage == Running && !(g.Phase == Draining && g.Limit) {
			w.Errorf("rule 6: SIGTERM to a %s epoch", g.Phase)
		}
	case Withdraw:
		if _, exited := ev.Is.(Exited); !exited && after.Stage == Running {
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
