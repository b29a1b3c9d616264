package load

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a server and its client in one, on synctest's clock.
type fake func(ctx context.Context, n *notes) error

func (f fake) run(ctx context.Context, n *notes) error { return f(ctx, n) }
func (fake) close()                                    {}

// takes is a server that always needs d.
func takes(d time.Duration) fake {
	return func(ctx context.Context, n *notes) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// darkBetween is a server that refuses at once from one moment to another.
func darkBetween(from, to time.Duration) fake {
	begin := time.Now()
	return func(context.Context, *notes) error {
		if at := time.Since(begin); at >= from && at < to {
			return errors.New("dark")
		}
		return nil
	}
}

// stalledUntil is a server that answers nothing before a moment, and then all.
func stalledUntil(at time.Duration) fake {
	begin := time.Now()
	return func(ctx context.Context, _ *notes) error {
		if !sleepUntil(ctx, begin.Add(at)) {
			return ctx.Err()
		}
		return nil
	}
}

// simulate runs one kind for d against server.
func simulate(t *testing.T, k KindPlan, p Plan, d time.Duration, server func() fake) (live, final KindReport) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p.Target = Target{HTTP: "127.0.0.1:1"}
		p.Kinds = []KindPlan{k}
		p, err := p.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		r := start(t.Context(), p, []client{server()}, time.Now())
		time.Sleep(d)
		synctest.Wait()
		live = r.Snapshot().Kinds[0]
		final = r.Stop().Kinds[0]
	})
	return live, final
}

func TestTheScheduleIsKept(t *testing.T) {
	// Due at 0, 10 … 990 ms, whether the server is fast or slow.
	for _, d := range []time.Duration{0, 5 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(d.String(), func(t *testing.T) {
			_, k := simulate(t, KindPlan{Kind: New, Rate: 100}, Plan{}, 995*time.Millisecond, func() fake { return takes(d) })
			if k.Started != 100 || k.OK != 100 || k.Max != d {
				t.Errorf("%+v", k)
			}
		})
	}
}

func TestLatencyCountsFromTheScheduleAndNotFromTheAnswerBefore(t *testing.T) {
	_, k := simulate(t, KindPlan{Kind: New, Rate: 100}, Plan{}, 995*time.Millisecond, func() fake { return stalledUntil(505 * time.Millisecond) })
	// 51 operations were due before the stall's end, 505 … 5 ms late: a client
	// that waits for its answers would have seen one slow one.
	if k.Max != 505*time.Millisecond || !about(k.P50, 5*time.Millisecond) || !about(k.P90, 405*time.Millisecond) {
		t.Errorf("P50 %v, P90 %v, Max %v", k.P50, k.P90, k.Max)
	}
}

// When the generator itself has fallen behind, what is late is started at once
// and has the delay in its latency.
func TestAGeneratorThatFallsBehindDoesNotHideIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := Plan{Target: Target{HTTP: "127.0.0.1:1"}, Kinds: []KindPlan{{Kind: New, Rate: 100}}}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		r := start(t.Context(), p, []client{takes(0)}, time.Now().Add(-505*time.Millisecond))
		synctest.Wait()
		if k := r.Stop().Kinds[0]; k.OK != 51 || k.Max != 505*time.Millisecond {
			t.Errorf("%+v", k)
		}
	})
}

func TestTooManyOutstandingAreCountedAndNotHidden(t *testing.T) {
	live, k := simulate(t, KindPlan{Kind: New, Rate: 100, MaxOutstanding: 20}, Plan{}, 995*time.Millisecond,
		func() fake { return takes(2 * time.Second) })
	if live.Started != 20 || live.Outstanding != 20 || live.Overrun != 80 || live.OK != 0 {
		t.Errorf("while it runs: %+v", live)
	}
	if k.Started != 20 || k.OK != 20 || k.Overrun != 80 || k.Failed != 0 || k.Outstanding != 0 {
		t.Errorf("at the end: %+v", k)
	}
}

func TestAnOutageWithinTheTimeoutIsNoOverrunByDefault(t *testing.T) {
	_, k := simulate(t, KindPlan{Kind: New, Rate: 100}, Plan{Timeout: time.Second}, 3*time.Second, func() fake { return takes(time.Hour) })
	if k.Overrun != 0 || k.Timeout != k.Started || k.Started < 299 {
		t.Errorf("%+v", k)
	}
}

func TestTheLongestGap(t *testing.T) {
	for _, c := range []struct {
		name   string
		server func() fake
		want   time.Duration
	}{
		{"none", func() fake { return takes(0) }, 10 * time.Millisecond},
		{"in the middle", func() fake { return darkBetween(295*time.Millisecond, 495*time.Millisecond) }, 210 * time.Millisecond},
		{"a stall", func() fake { return stalledUntil(400 * time.Millisecond) }, 400 * time.Millisecond},
		{"at the beginning", func() fake { return darkBetween(0, 305*time.Millisecond) }, 310 * time.Millisecond},
		{"to the end", func() fake { return darkBetween(705*time.Millisecond, time.Hour) }, 290 * time.Millisecond},
		{"all of it", func() fake { return darkBetween(0, time.Hour) }, 990 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, k := simulate(t, KindPlan{Kind: New, Rate: 100}, Plan{}, 995*time.Millisecond, c.server)
			if k.LongestGap != c.want {
				t.Errorf("longest gap %v, want %v: %+v", k.LongestGap, c.want, k)
			}
		})
	}
}

// A stream's own duration is neither latency nor gap.
func TestAStreamsDurationIsTakenOff(t *testing.T) {
	_, k := simulate(t, KindPlan{Kind: Stream, Rate: 10, StreamDuration: time.Second}, Plan{}, 2990*time.Millisecond,
		func() fake { return takes(1020 * time.Millisecond) })
	if k.OK != 30 || k.Max != 20*time.Millisecond || k.LongestGap != 100*time.Millisecond {
		t.Errorf("%+v", k)
	}
}

func TestAClosedLoopKeepsItsConcurrency(t *testing.T) {
	live, k := simulate(t, KindPlan{Kind: New, Concurrency: 3}, Plan{}, 995*time.Millisecond, func() fake { return takes(100 * time.Millisecond) })
	if live.Outstanding != 3 || k.OK != 30 {
		t.Errorf("outstanding %d, want 3; OK %d, want 30", live.Outstanding, k.OK)
	}
}

func TestAClosedLoopDoesNotSpinAtAClosedPort(t *testing.T) {
	_, k := simulate(t, KindPlan{Kind: New, Concurrency: 1}, Plan{}, 995*time.Millisecond, func() fake { return darkBetween(0, time.Hour) })
	if k.Failed != 10 {
		t.Errorf("%d tries in a second, want 10", k.Failed)
	}
}

func TestStrictMakesARetryAFailure(t *testing.T) {
	for _, strict := range []bool{false, true} {
		_, k := simulate(t, KindPlan{Kind: New, Rate: 10}, Plan{Strict: strict}, 950*time.Millisecond, func() fake {
			return func(_ context.Context, n *notes) error { n.retried = 1; return nil }
		})
		if k.Retried != 10 || strict != (k.Failed == 10) || strict != (k.Strict == 10) || strict != (k.OK == 0) {
			t.Errorf("strict %t: %+v", strict, k)
		}
	}
}

func TestOnlyTheFirstErrorsAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := Plan{
			Target: Target{HTTP: "127.0.0.1:1"}, MaxErrors: 3,
			Kinds: []KindPlan{{Kind: New, Rate: 10}, {Kind: H2, Rate: 20}},
		}.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		calls := 0
		fail := fake(func(_ context.Context, n *notes) error {
			calls++
			n.epoch = "v2"
			return fmt.Errorf("failure: %w", context.DeadlineExceeded)
		})
		r := start(t.Context(), p, []client{fail, takes(0)}, time.Now())
		time.Sleep(time.Second - time.Millisecond)
		report := r.Stop()
		if report.Failures() != calls || calls != 10 || len(report.Errors) != 3 {
			t.Fatalf("%d failures of %d, %d errors kept", report.Failures(), calls, len(report.Errors))
		}
		want := Error{Kind: New, Offset: 100 * time.Millisecond, Heading: timedOut, Epoch: "v2", Message: "failure: context deadline exceeded"}
		if report.Errors[1] != want {
			t.Errorf("got %+v, want %+v", report.Errors[1], want)
		}
	})
}

// about allows for the histogram's resolution.
func about(got, want time.Duration) bool { return got >= want && got <= want+want/32 }
