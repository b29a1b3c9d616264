package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aether.internal/test/demo/report"
	"aether.internal/test/node"
)

// play is a world whose sight is whatever the test's steps make of it.
type play struct {
	sight
	seen int
}

func (p *play) see(context.Context) sight {
	p.seen++
	p.at = time.Now()
	return p.sight
}

func (p *play) set(change func(*sight)) func(context.Context, look) error {
	return func(context.Context, look) error { change(&p.sight); return nil }
}

func newTeller(w world) *teller {
	return &teller{world: w, screen: newScreen(io.Discard), chronicle: &chronicle{}, patience: 10 * time.Second}
}

func serving(epoch int) func(*sight) {
	return func(s *sight) {
		s.status = node.Status{Serving: epoch, Ready: true, Epochs: []node.Epoch{{Epoch: epoch, State: "serving", PID: epoch + 1}}}
	}
}

func serve(epoch int) want {
	return want{"it to serve", func(_, now sight) bool { return now.status.Serving == epoch }}
}

func TestTellerDoesStepAfterStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &play{}
		p.status.Serving = -1
		steps := []step{
			{title: "one", say: "First.", do: p.set(serving(0)), want: serve(0), watch: time.Second},
			{title: "two", say: "Second.", do: func(_ context.Context, look look) error {
				if err := look(500 * time.Millisecond); err != nil {
					return err
				}
				serving(1)(&p.sight)
				return nil
			}, want: serve(1), watch: 2 * time.Second},
		}
		began := time.Now()
		told, err := newTeller(p).tell(t.Context(), steps)
		if err != nil {
			t.Fatal(err)
		}
		want := []report.Step{
			{Title: "one", Say: "First.", Outcome: "epoch 0 serves"},
			{Title: "two", Say: "Second.", At: time.Second, Took: 500 * time.Millisecond, Outcome: "epoch 1 serves"},
		}
		if len(told) != 2 || told[0] != want[0] || told[1] != want[1] {
			t.Errorf("%+v\nwant %+v", told, want)
		}
		if took := time.Since(began); took != 3500*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if least := int(3500 * time.Millisecond / glance); p.seen < least {
			t.Errorf("looked %d times, want at least %d", p.seen, least)
		}
	})
}

func TestTellerStops(t *testing.T) {
	never := want{"a miracle", func(_, _ sight) bool { return false }}
	dies := func(s *sight) { s.ended, s.code = true, 137 }
	for name, c := range map[string]struct {
		step step
		want string
		took time.Duration
	}{
		"when its patience is over":        {step{do: func(context.Context, look) error { return nil }, want: never}, "a miracle: not seen in 10s", 10 * time.Second},
		"when it can't be done":            {step{do: func(context.Context, look) error { return errors.New("disk full") }, want: never}, "disk full", 0},
		"when the supervisor ends":         {step{do: func(_ context.Context, look look) error { return nil }, want: never}, "the supervisor has ended with code 137", 0},
		"when what ends it is not awaited": {step{do: nil, want: serve(1)}, "the supervisor has ended with code 137", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &play{}
				if strings.Contains(c.want, "137") {
					c.step.do = p.set(dies)
				}
				c.step.title = "it"
				told, err := newTeller(p).tell(t.Context(), []step{c.step, {do: func(context.Context, look) error {
					t.Error("it went on")
					return nil
				}}})
				if err == nil || err.Error() != "step 1, it: "+c.want {
					t.Errorf("error %v", err)
				}
				if len(told) != 1 || !told[0].Failed || told[0].Outcome != c.want {
					t.Errorf("told %+v", told)
				}
				if over := told[0].Took - c.took; over < 0 || over > glance {
					t.Errorf("took %v, want %v", told[0].Took, c.took)
				}
			})
		})
	}
}

func TestTellerIsInterruptedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, errors.New("interrupted"))
		defer cancel()
		p := &play{}
		began := time.Now()
		_, err := newTeller(p).tell(ctx, []step{{do: p.set(serving(0)), want: serve(0), watch: time.Hour}})
		if err == nil || err.Error() != "interrupted" {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestOutcomes(t *testing.T) {
	before := sight{status: node.Status{Serving: 3}}
	for want, change := range map[string]func(*sight){
		"exit code 0":                 func(s *sight) { s.ended, s.loadEnded = true, true },
		"refused: epoch 3 goes on":    func(s *sight) { s.log.refused = 1 },
		"taken back; epoch 3 serves":  func(s *sight) { s.log.takenBack = 1 },
		"epoch 4 serves":              func(s *sight) { s.status.Serving, s.log.unchanged = 4, 1 },
		"no restart: epoch 3 goes on": func(s *sight) { s.log.unchanged = 1 },
		"2 of 1,002 failed":           func(s *sight) { s.loadEnded, s.done, s.failed = true, 1000, 2 },
		"what was wanted":             func(*sight) {},
	} {
		teller := newTeller(&play{})
		teller.last = before
		change(&teller.last)
		if got := teller.outcome(step{want: want0("what was wanted")}, before); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func want0(what string) want { return want{what: what} }
