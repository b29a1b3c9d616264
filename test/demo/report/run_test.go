package report

import (
	"strings"
	"testing"
	"time"

	"aether.internal/test/load"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// sample is a run of ten seconds with one handoff, one refusal and one
// newcomer that is taken back; the load begins at 1 s.
func sample() Run {
	s := func(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }
	r := Run{
		Began: noon, Length: s(10), Bucket: s(1),
		Steps: []Step{
			{Title: "start", Say: "Start it.", Outcome: "epoch 0 serves", Took: s(0.5)},
			{Title: "change", Say: "Change it.", At: s(4), Took: s(0.2), Outcome: "epoch 1 serves"},
			{Title: "break", Say: "Break it.", At: s(4.1), Took: s(0.1), Outcome: "refused: epoch 1 goes on"},
		},
		Lanes: []Lane{
			{Epoch: 0, Version: "1.39.3", Tag: "v1", Phases: []Phase{{"starting", 0, s(0.5)}, {"serving", s(0.5), s(4.2)}, {"draining", s(4.2), s(7)}}},
			{Epoch: 1, Version: "1.40.0", Tag: "v2", Phases: []Phase{{"starting", s(4.1), s(4.2)}, {"serving", s(4.2), s(10)}}},
			{Epoch: 2, Version: "1.40.0", Tag: "bad", Phases: []Phase{{"starting", s(8), s(8.1)}, {"removing", s(8.1), s(8.2)}}},
		},
		Handoffs: []Handoff{{From: -1, To: 0, At: s(0.5), Live: s(0.4)}, {From: 0, To: 1, At: s(4.2), Prepare: s(0.09), Live: s(0.1), Verify: s(0.01)}},
		Refusals: []Refusal{{At: s(6), Epoch: 2, Step: "validate", Error: "no such field"}, {At: s(8.15), Epoch: 2, TakenBack: true, Step: "start", Error: "it ended"}},
		Load: load.Report{Start: noon.Add(time.Second), Duration: s(9), Kinds: []load.KindReport{
			{Kind: "new", Started: 1000, OK: 1000, P99: 5 * time.Millisecond, Max: 9 * time.Millisecond, Epochs: map[string]int{"v1": 400, "v2": 400}},
			{Kind: "tcp", TLS: true, Started: 200, OK: 200, P99: 2 * time.Millisecond, Max: 20 * time.Millisecond},
		}},
		Facts: []Fact{{"Envoy", "1.39.3 → 1.40.0"}},
	}
	for i := range 8 {
		tag := "v1"
		if i >= 4 {
			tag = "v2"
		}
		r.Load.Timeline = append(r.Load.Timeline, load.Bucket{OffsetMS: int64(i) * 1000, OK: 150, P50US: 900, P99US: 5000, Epochs: map[string]int{tag: 100}})
	}
	return r
}

// dropping is a sample in which 3 operations failed.
func dropping() Run {
	r := sample()
	r.Load.Kinds[0].OK, r.Load.Kinds[0].Failed, r.Load.Kinds[0].Reset = 997, 3, 3
	r.Load.Timeline[3].OK, r.Load.Timeline[3].Failed = 147, 3
	r.Load.Errors = []load.Error{{Kind: "new", Offset: 3500 * time.Millisecond, Heading: "reset", Message: "connection reset by peer"}}
	return r
}

func TestVerdict(t *testing.T) {
	broken, none, both := sample(), sample(), dropping()
	broken.Broken, both.Broken = "step 2, change: not seen in 30s", "step 2, change: not seen in 30s."
	none.Load = load.Report{}
	for _, c := range []struct {
		run    Run
		want   string
		failed bool
	}{
		{sample(), "Nothing was dropped: 1,200 operations, 1 hot restart, 0 failures.", false},
		{dropping(), "Dropped: 3 of 1,200 operations failed in 1 hot restart.", true},
		{broken, "Nothing was dropped: 1,200 operations, 1 hot restart, 0 failures. The story broke off: step 2, change: not seen in 30s.", true},
		{both, "Dropped: 3 of 1,200 operations failed in 1 hot restart. The story broke off: step 2, change: not seen in 30s.", true},
		{none, "There was no load, so nothing is shown.", true},
	} {
		if got := c.run.Verdict(); got != c.want || c.run.Failed() != c.failed {
			t.Errorf("%q, failed %t; want %q, %t", got, c.run.Failed(), c.want, c.failed)
		}
	}
}

func TestFigures(t *testing.T) {
	r := sample()
	if got := r.AliveAtOnce(); got != 2 {
		t.Errorf("%d alive at once", got)
	}
	if low, high := r.P99(); low != 2*time.Millisecond || high != 5*time.Millisecond || r.Worst() != 20*time.Millisecond {
		t.Errorf("p99 from %v to %v, worst %v", low, high, r.Worst())
	}
	if got := r.Lane(1).Length("serving"); got != 5800*time.Millisecond {
		t.Errorf("epoch 1 served %v", got)
	}
	if got := r.Lane(2); got.Phases != nil {
		t.Errorf("epoch 2 never served: %+v", got)
	}
}

func TestHandoffTimes(t *testing.T) {
	var r Run
	if low, median, high := r.HandoffTimes(); low+median+high != 0 {
		t.Errorf("of none: %v %v %v", low, median, high)
	}
	r.Handoffs = []Handoff{{From: -1, Live: time.Hour}, {Live: 3, Waited: time.Hour}, {Live: 1}, {Live: 1, Prepare: 1}}
	if low, median, high := r.HandoffTimes(); low != 1 || median != 2 || high != 3 {
		t.Errorf("%v %v %v", low, median, high)
	}
}

func TestThreeGenerations(t *testing.T) {
	lane := func(from, to time.Duration) Lane { return Lane{Phases: []Phase{{"serving", from, to}}} }
	r := Run{Lanes: []Lane{lane(0, 10), lane(2, 5), lane(4, 9), lane(5, 6), {}}}
	if got := r.AliveAtOnce(); got != 3 { // what ends when another begins isn't alive with it
		t.Errorf("%d", got)
	}
}

func TestRefusalBelongsToItsLife(t *testing.T) {
	r := sample()
	again := Lane{Epoch: 2, Version: "1.40.0", Tag: "v3", Phases: []Phase{{"starting", 9e9, 9.1e9}, {"serving", 9.1e9, 10e9}}}
	r.Lanes = append(r.Lanes, again)
	var got []string
	for _, e := range r.entries() {
		what := "refusal"
		if e.lane != nil {
			what = e.lane.Tag
			if e.refusal != nil {
				what += " taken back"
			}
		}
		got = append(got, what)
	}
	if want := "v1, v2, refusal, bad taken back, v3"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}
