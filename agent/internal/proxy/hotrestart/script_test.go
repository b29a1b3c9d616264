package hotrestart

import (
	"fmt"
	"reflect"
	"slices"
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
	Handoff: 2 * time.Minute, GiveWay: 10 * time.Second, Drain: 25 * time.Second, Parent: 40 * time.Second, Kill: 5 * time.Second, Silent: 30 * time.Second,
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
