package hotrestart

import (
	"strings"
	"testing"
	"time"
)

// lines are the log lines of the last event whose text is as given.
func (s *script) lines(text string) (found []string) {
	for _, a := range s.did {
		if l, ok := a.(Log); ok && l.Text == text {
			found = append(found, attrs(l.Attrs))
		}
	}
	return found
}

// threeLive has epochs 0 and 1 draining and 2 serving.
func threeLive(t *testing.T) *script {
	s := newScript(t).serving(0)
	for epoch := 1; epoch <= 2; epoch++ {
		s.on(Triggered{By: TriggerSignal}).good(ModeRelay).up(epoch)
	}
	return s
}

func TestAWaitIsSaidOnceWithWhatItWaitsFor(t *testing.T) {
	s := threeLive(t).on(Counted{0, 7}).after(time.Second).on(Triggered{By: TriggerConfig}).good(ModeRelay)
	if got := s.lines("a handoff waits"); len(got) != 1 || got[0] != " for=epoch 0 (draining, 7 connections) to end wanted=0s at most=39s" {
		t.Errorf("%q", got)
	}
	// Neither what passes nor another wish for the same thing is worth a line.
	for _, ev := range []any{Counted{0, 6}, Counted{1, 5}, Tick{}, Triggered{By: TriggerSignal}} {
		if got := s.after(time.Second).on(ev).lines("a handoff waits"); len(got) > 0 {
			t.Errorf("%T: said again: %q", ev, got)
		}
	}
	s.on(Counted{0, 0}).on(Counted{0, 0}).on(Exited{Epoch: 0}).does(Launch{Epoch: 3})
	if got := s.state.waitsFor(); got != "the bootstrap that is being validated" {
		t.Error(got)
	}
	// The next newcomer in the way is another reason.
	s.on(Prepared{ID: s.state.Reading.ID, Failed: &Refusal{Step: "validate"}})
	s.on(Triggered{By: TriggerReload})
	if got := s.lines("a handoff waits"); len(got) != 1 || !strings.Contains(got[0], "for=epoch 3 (starting) to be committed or taken back") {
		t.Errorf("%q", got)
	}
}

func TestANewcomerThatIsNotLiveSaysWhatItWaitsFor(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1, Pid: 1}).after(time.Second)
	s.on(Unverified{1, []string{"listener a"}})
	if got := s.lines("waiting for the newcomer to be LIVE"); len(got) != 1 || got[0] != " epoch=1 for=1s missing=[listener a]" {
		t.Errorf("%q", got)
	}
	if got := s.after(time.Second).on(Unverified{1, []string{"listener a"}}).lines("waiting for the newcomer to be LIVE"); len(got) > 0 {
		t.Errorf("said again: %q", got)
	}
}

func TestALogReopenThatWaitsSaysSoOnce(t *testing.T) {
	s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1, Pid: 1}).on(Answered{0})
	if got := s.on(Reopen{}).lines("log reopen waits for the epoch's first answer"); len(got) != 1 || got[0] != " epoch=1 phase=starting" {
		t.Errorf("%q", got)
	}
	if got := s.on(Reopen{}).lines("log reopen waits for the epoch's first answer"); len(got) > 0 {
		t.Errorf("%q", got)
	}
}
