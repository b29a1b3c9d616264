package drain

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fake is an Envoy whose connections follow a script, one entry a look; the
// last one stays.
type fake struct {
	counts []int // -1: the look fails
	looks  int
	asked  int
	askErr error
}

func (f *fake) target(epoch int, done <-chan struct{}) Target {
	return Target{
		Epoch: epoch, Done: done,
		Ask: func(context.Context) error { f.asked++; return f.askErr },
		Count: func(context.Context) (int, error) {
			n := f.counts[min(f.looks, len(f.counts)-1)]
			f.looks++
			if n < 0 {
				return 0, errors.New("silent")
			}
			return n, nil
		},
	}
}

// A thousand connections that leave one by one are a few lines.
func TestTheWaitIsSaidNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts []int
		for n := 60; n >= 0; n-- {
			counts = append(counts, n)
		}
		var log bytes.Buffer
		f := fake{counts: counts}
		target := f.target(1, make(chan struct{}))
		Stop(t.Context(), target, []Target{target}, slog.New(slog.NewTextHandler(&log, nil)))
		if lines := strings.Count(log.String(), "stop: waiting for connections"); lines < 2 || lines > 4 {
			t.Errorf("%d lines for %d different counts:\n%s", lines, len(counts), log.String())
		}
	})
}

func TestStop(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	for name, c := range map[string]struct {
		newest, old  fake
		oldDone      chan struct{}
		drained      bool
		atMost, from time.Duration
	}{
		"idle":                         {newest: fake{counts: []int{0}}, old: fake{counts: []int{0}}, drained: true, atMost: 100 * time.Millisecond},
		"once zero is not idle":        {newest: fake{counts: []int{0, 4, 0, 0, 9}}, old: fake{counts: []int{0}}, drained: true, atMost: time.Second},
		"the old one counts as well":   {newest: fake{counts: []int{0}}, old: fake{counts: []int{1, 1, 1, 1, 0}}, drained: true, atMost: time.Second},
		"a failed count is not zero":   {newest: fake{counts: []int{-1}}, old: fake{counts: []int{0}}, drained: false, from: 10 * time.Second},
		"never idle":                   {newest: fake{counts: []int{1}}, old: fake{counts: []int{0}}, drained: false, from: 10 * time.Second},
		"a dead one has none":          {newest: fake{counts: []int{0}}, old: fake{counts: []int{-1}}, oldDone: ended, drained: true, atMost: 100 * time.Millisecond},
		"can't be asked, but is empty": {newest: fake{counts: []int{0}, askErr: errors.New("gone")}, old: fake{counts: []int{0}}, drained: true, atMost: 100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				start := time.Now()
				newest := c.newest.target(1, make(chan struct{}))
				got := Stop(ctx, newest, []Target{newest, c.old.target(0, c.oldDone)}, slog.New(slog.DiscardHandler))
				took := time.Since(start)
				if got != c.drained || c.drained && took > c.atMost || took < c.from {
					t.Errorf("drained %t after %v", got, took)
				}
				if c.newest.asked != 1 || c.old.asked != 0 {
					t.Errorf("asked newest %d times, old %d times", c.newest.asked, c.old.asked)
				}
			})
		})
	}
}

func TestAnEnvoyThatHangsIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		looks := 0
		stuck := Target{Ask: hang, Count: func(context.Context) (int, error) { looks++; return 0, nil }}
		start := time.Now()
		if !Stop(ctx, stuck, []Target{stuck}, slog.New(slog.DiscardHandler)) {
			t.Error("not drained")
		}
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("a silent admin cost %v", took)
		}
	})
}
