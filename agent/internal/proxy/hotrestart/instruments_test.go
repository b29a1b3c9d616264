package hotrestart

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unknownMeasure says what of a Measure the table doesn't have, "" for nothing.
// Steps that only tests use are no instrument's.
func unknownMeasure(m Measure) string {
	i := slices.IndexFunc(Instruments, func(in Instrument) bool { return in.Name == m.Name })
	switch {
	case i < 0:
		return fmt.Sprintf("no instrument %q", m.Name)
	case Instruments[i].Key == "" && m.Label != "", Instruments[i].Key != "" && !slices.Contains(Instruments[i].Values, m.Label):
		return fmt.Sprintf("instrument %q has no %s %q", m.Name, Instruments[i].Key, m.Label)
	}
	return ""
}

func TestInstrumentsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, in := range Instruments {
		if seen[in.Name] || in.Meaning == "" || in.Unit == "" || (in.Key == "") != (len(in.Values) == 0) ||
			(in.Kind == Histogram) != (len(in.bounds) > 0) || !slices.IsSorted(in.bounds) || !slices.Contains([]string{Counter, Gauge, Histogram}, in.Kind) {
			t.Errorf("%+v is doubled or has gaps", in)
		}
		seen[in.Name] = true
	}
}

// Each step at which something can fail is a value of its attribute, and each
// value a step: else a failure of a new kind is only "other".
func TestEveryStepIsAnAttributesValue(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, step := range stepsOf(n) {
				used[step] = true
			}
			return true
		})
	}
	delete(used, "serve") // of a crash, which is neither refused nor taken back
	known := map[string]bool{}
	for _, step := range slices.Concat(refusalSteps, takeBackSteps) {
		known[step] = true
		if !used[step] {
			t.Errorf("nothing fails at step %q any more", step)
		}
	}
	for step := range used {
		if !known[step] {
			t.Errorf("step %q is in neither refusalSteps nor takeBackSteps", step)
		}
	}
}

// stepsOf are the steps that are named by Refusal{Step: …} and takeBack(g, …).
func stepsOf(n ast.Node) []string {
	literal := func(x ast.Expr) []string {
		if lit, ok := x.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				return []string{s}
			}
		}
		return nil
	}
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "takeBack" && len(n.Args) == 3 {
			return literal(n.Args[1])
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Step" {
			return literal(n.Value)
		}
	}
	return nil
}

// History ends with the newest tries, and older states keep theirs.
func TestHistoryIsBounded(t *testing.T) {
	s := newScript(t).serving(0)
	before := s.state
	for range historySize + 5 {
		s.on(Triggered{By: TriggerSignal}).on(Prepared{ID: s.state.Reading.ID, Failed: &Refusal{Step: "validate"}})
		s.does(Concluded{})
	}
	if n := len(s.state.History); n != historySize {
		t.Errorf("%d tries", n)
	}
	if n := len(before.History); n != 1 || before.History[0].Outcome != "committed" || before.History[0].From != -1 {
		t.Errorf("%+v", before.History)
	}
}

func TestOutcomesOfNewcomersThatAreGone(t *testing.T) {
	begin := func() *script {
		return newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1, Pid: 1})
	}
	last := func(s *script) Handoff { return s.state.History[len(s.state.History)-1] }
	failed := begin().on(WentLive{1}).on(Exited{Epoch: 1, Status: "exit code 1"}).on(Removed{Epoch: 1})
	if h := last(failed); h.Outcome != "failed" || h.Step != "start" || h.LiveAt.IsZero() || h.FailedAt.IsZero() || h.From != 0 || h.To != 1 {
		t.Errorf("%+v", h)
	}
	stopped := begin().on(Stop{By: "test"}).on(Removed{Epoch: 1})
	if h := last(stopped); h.Outcome != "stopping" || h.Step != "" || !h.FailedAt.IsZero() {
		t.Errorf("%+v", h)
	}
	// A failure of an earlier newcomer of the same number is not this one's.
	stoppedLater := failed.on(Triggered{By: TriggerSignal}).after(1).good(ModeRelay).on(Launched{Epoch: 1, Pid: 2}).on(Stop{By: "test"}).on(Removed{Epoch: 1})
	if h := last(stoppedLater); h.Outcome != "stopping" {
		t.Errorf("%+v", h)
	}
	superseded := begin().after(testLimits.GiveWay).on(Triggered{By: TriggerConfig}).good(ModeRelay).on(Removed{Epoch: 1})
	if h := last(superseded); h.Outcome != "superseded" {
		t.Errorf("%+v", h)
	}
}

// A draining epoch that ends by itself cuts what it had; Envoy's own timer does so
// only where it is the limit.
func TestParentsThatEndByThemselves(t *testing.T) {
	for _, c := range []struct {
		mode   Mode
		exited Exited
		reason string
	}{
		{ModeRelay, Exited{Epoch: 0, Code: ExitNewest}, "early"},
		{ModePlain, Exited{Epoch: 0, Code: ExitNewest}, "protocol"},
		{ModePlain, Exited{Epoch: 0, Code: ExitSignal + 9}, "early"},
	} {
		s := newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(c.mode).on(Launched{Epoch: 1, Pid: 1})
		s.on(WentLive{1}).on(Verified{1}).after(1).on(c.exited)
		s.does(Measure{Name: "parents_ended", Label: c.reason}, Released{Epoch: 0, Why: c.reason}, Measure{Name: "drain.duration"})
	}
}

// Each newcomer's end is counted once, whichever of the two events about it comes,
// or comes first.
func TestANewcomersEndIsCountedOnce(t *testing.T) {
	count := func(s *script) (kinds []string) {
		for _, a := range s.did {
			if m, ok := a.(Measure); ok && m.Name == "child_exits" {
				kinds = append(kinds, m.Label)
			}
		}
		return kinds
	}
	begin := func() *script {
		return newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1, Pid: 1})
	}
	s := begin().on(Exited{Epoch: 1})
	if got := append(count(s), count(s.on(Removed{Epoch: 1}))...); !slices.Equal(got, []string{"newcomer"}) {
		t.Errorf("one that ended by itself: %q", got)
	}
	s = begin().after(testLimits.Handoff).on(Tick{})
	if got := append(count(s.on(Exited{Epoch: 1})), count(s.on(Removed{Epoch: 1}))...); !slices.Equal(got, []string{"taken_back"}) {
		t.Errorf("one that was taken back: %q", got)
	}
	s = begin().after(testLimits.Handoff).on(Tick{})
	if got := append(count(s.on(Removed{Epoch: 1})), count(s.on(Exited{Epoch: 1}))...); !slices.Equal(got, []string{"taken_back"}) {
		t.Errorf("one whose exit is said too late: %q", got)
	}
	s = newScript(t).serving(0).on(Triggered{By: TriggerSignal}).good(ModeRelay).on(Launched{Epoch: 1, Failed: &Refusal{Step: "start Envoy"}})
	if got := count(s.on(Removed{Epoch: 1})); len(got) > 0 {
		t.Errorf("one that was never started: %q", got)
	}
}
