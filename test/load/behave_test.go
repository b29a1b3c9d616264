package load_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"aether.internal/test/load"
)

// A server that behaves gives no failure of any kind, and every kind that can
// see the epoch sees it.
func TestNoFailureWhenTheServerBehaves(t *testing.T) {
	t.Parallel()
	plan := load.DefaultPlan(behaved(t, "v7"))
	plan.StreamDuration = 300 * time.Millisecond
	plan.Timeout = 20 * time.Second
	plan.Strict = true
	modest(plan)
	if got, want := len(plan.Kinds), 2*len(everyKind); got != want {
		t.Fatalf("the default plan has %d kinds, want %d", got, want)
	}
	run := begin(t, plan)
	until(t, run, "three of each kind", func(r load.Report) bool {
		for _, k := range r.Kinds {
			if k.OK < 3 && k.Failed == 0 {
				return false
			}
		}
		return true
	})
	report := run.Stop()
	for _, k := range report.Kinds {
		if k.Failed != 0 || k.Overrun != 0 || k.IdleClosed != 0 || k.ToldToClose != 0 || k.Outstanding != 0 || k.Started != k.OK {
			t.Errorf("%+v", k)
		}
		raw := k.Kind == load.TCP || k.Kind == load.TCPHold
		if !raw && (len(k.Epochs) != 1 || k.Epochs["v7"] != k.OK) || raw && len(k.Epochs) != 0 {
			t.Errorf("%s: epochs %v, OK %d", k.Kind, k.Epochs, k.OK)
		}
		if k.P50 == 0 || k.P50 > k.P90 || k.P90 > k.P99 || k.P99 > k.Max {
			t.Errorf("%s: latencies out of order: %v %v %v %v", k.Kind, k.P50, k.P90, k.P99, k.Max)
		}
	}
	if t.Failed() {
		t.Log("\n" + report.Table())
	}
	timelineAddsUp(t, report)
	readsBack(t, report)
	if again := run.Stop(); again.OK() != report.OK() || run.Snapshot().OK() != report.OK() {
		t.Error("the report changed after Stop")
	}
}

func timelineAddsUp(t *testing.T, r load.Report) {
	t.Helper()
	ok, v7 := 0, 0
	for i, b := range r.Timeline {
		if b.OffsetMS != int64(i)*100 {
			t.Errorf("bucket %d is at %d ms", i, b.OffsetMS)
		}
		ok, v7 = ok+b.OK, v7+b.Epochs["v7"]
	}
	if ok != r.OK() || v7 != r.Epochs()["v7"] {
		t.Errorf("the timeline has %d OK and %d of v7, the report %d and %d", ok, v7, r.OK(), r.Epochs()["v7"])
	}
}

func readsBack(t *testing.T, r load.Report) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back load.Report
	if err := json.Unmarshal(text, &back); err != nil || back.Table() != r.Table() {
		t.Errorf("JSON doesn't read back (%v):\n%s", err, back.Table())
	}
	for _, name := range []string{`"errors":[]`, `"p99_ns":`, `"longest_gap_ns":`, `"offset_ms":100`, `"told_to_close":0`} {
		if !strings.Contains(string(text), name) {
			t.Errorf("the JSON has no %s", name)
		}
	}
}

// When the run's context ends, what is out is given up at once, and nobody is
// blamed for it.
func TestWhatWeAbandonIsNoFailure(t *testing.T) {
	t.Parallel()
	plan := load.DefaultPlan(behaved(t, ""))
	plan.StreamDuration = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	run, err := load.Start(ctx, plan)
	if err != nil {
		t.Fatal(err)
	}
	until(t, run, "streams of each kind", func(r load.Report) bool {
		for _, k := range r.Kinds {
			if k.Started == 0 {
				return false
			}
		}
		return true
	})
	cancel()
	report := run.Stop()
	for _, k := range report.Kinds {
		if k.Failed != 0 || k.Outstanding != 0 || k.Started != k.OK+k.Abandoned {
			t.Errorf("%+v", k)
		}
	}
	if report.Kind(load.Stream, true).Abandoned == 0 || report.Duration > 30*time.Second {
		t.Errorf("after %v:\n%s", report.Duration, report.Table())
	}
}

// A server that takes 300 ms with one connection at a time doesn't slow the
// clock: latencies pile up instead.
func TestASlowServerShowsInTheLatencyAndNotInTheRate(t *testing.T) {
	t.Parallel()
	turn := make(chan struct{}, 1)
	slow := rogue(t, nil, func(c *wireConn, _ int) {
		if !c.request() {
			return
		}
		turn <- struct{}{}
		defer func() { <-turn }()
		select {
		case <-time.After(300 * time.Millisecond): // the subject of the test
			c.say(hello(""))
		case <-c.end:
		}
	})
	run := begin(t, load.Plan{
		Target: load.Target{HTTP: slow}, Timeout: time.Minute,
		Kinds: []load.KindPlan{{Kind: load.New, Rate: 20}},
	})
	until(t, run, "five answers", func(r load.Report) bool { return r.OK() >= 5 })
	k := run.Snapshot().Kinds[0]
	// In the 1.5 s of five answers, 30 operations are due. The fifth answer is
	// for one that was due at 0.2 s.
	if k.Started < 25 || k.Max < time.Second || k.Failed != 0 {
		t.Errorf("the clock waited for the server: %+v", k)
	}
}

func TestAPlanThatCannotBeRun(t *testing.T) {
	t.Parallel()
	target := load.Target{HTTP: "127.0.0.1:1", TCP: "nonsense", TLS: "127.0.0.1:0"}
	for _, c := range []struct {
		kinds []load.KindPlan
		want  string
	}{
		{nil, "no kinds"},
		{[]load.KindPlan{{Kind: "http3", Rate: 1}}, `kind 0 ("http3", tls false): no such kind`},
		{[]load.KindPlan{{Kind: load.New, TLS: true, Rate: 1}}, "no listener"},
		{[]load.KindPlan{{Kind: load.TCP, Rate: 1}}, "nonsense"},
		{[]load.KindPlan{{Kind: load.TCP, TLS: true, Rate: 1}}, "want a port"},
		{[]load.KindPlan{{Kind: load.New}}, "rate or a concurrency"},
		{[]load.KindPlan{{Kind: load.New, Rate: 1, Concurrency: 1}}, "only one"},
		{[]load.KindPlan{{Kind: load.New, Rate: 1, Concurrency: -1}}, "above 0"},
		{[]load.KindPlan{{Kind: load.New, Rate: -1}}, "above 0"},
	} {
		run, err := load.Start(t.Context(), load.Plan{Target: target, Kinds: c.kinds})
		if err == nil {
			run.Stop()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.kinds, err, c.want)
		}
	}
}

func TestTheDefaultPlanLeavesOutWhatHasNoListener(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		target load.Target
		kinds  int
	}{
		{load.Target{}, 0},
		{load.Target{HTTP: "a:1"}, 7},
		{load.Target{HTTPS: "a:1", TCP: "a:2"}, 9},
		{load.Target{TLS: "a:1"}, 2},
	} {
		plan := load.DefaultPlan(c.target)
		total := 0.0
		for _, k := range plan.Kinds {
			total += k.Rate
		}
		if len(plan.Kinds) != c.kinds {
			t.Errorf("%+v: %d kinds, want %d: %s", c.target, len(plan.Kinds), c.kinds, fmt.Sprint(plan.Kinds))
		}
	}
}
