package main

import (
	"context"
	"fmt"
	"time"

	"aether.internal/test/demo/report"
)

// world is what the story happens to.
type world interface {
	see(ctx context.Context) sight
}

// teller tells a story: it does one step after the other, looks at the world
// all the time, and shows and keeps what it sees. It has no goroutine.
type teller struct {
	world     world
	screen    *screen
	chronicle *chronicle
	patience  time.Duration // for a step's want
	began     time.Time
	last      sight
}

// glance is how often the world is looked at: a handoff takes a tenth of a
// second, of which each phase should be seen.
const glance = 20 * time.Millisecond

// tell returns the steps it came to, and why it went no further.
func (t *teller) tell(ctx context.Context, steps []step) ([]report.Step, error) {
	t.began = time.Now()
	t.glance(ctx)
	var told []report.Step
	for i, s := range steps {
		t.screen.step(i+1, len(steps), s.say)
		r, err := t.play(ctx, s)
		told = append(told, r)
		t.screen.outcome(r)
		if err != nil {
			return told, fmt.Errorf("step %d, %s: %w", i+1, s.title, err)
		}
		if err := t.watch(ctx, s.watch); err != nil {
			return told, err
		}
	}
	return told, nil
}

// play does one step.
func (t *teller) play(ctx context.Context, s step) (report.Step, error) {
	before, begin := t.last, time.Now()
	r := report.Step{Title: s.title, Say: s.say, At: begin.Sub(t.began)}
	err := s.do(ctx, func(d time.Duration) error { return t.watch(ctx, d) })
	if err == nil {
		err = t.await(ctx, s.want, before)
	}
	r.Took = time.Since(begin)
	r.Outcome, r.Failed = t.outcome(s, before), err != nil
	if err != nil {
		r.Outcome = err.Error()
	}
	return r, err
}

// await looks until it is as wanted.
func (t *teller) await(ctx context.Context, w want, before sight) error {
	deadline := time.Now().Add(t.patience)
	for {
		t.glance(ctx)
		switch {
		case w.met(before, t.last):
			return nil
		case t.last.ended:
			return fmt.Errorf("the supervisor has ended with code %d", t.last.code)
		case time.Now().After(deadline):
			return fmt.Errorf("%s: not seen in %v", w.what, t.patience)
		}
		if err := pause(ctx, glance); err != nil {
			return err
		}
	}
}

// watch looks on for a while.
func (t *teller) watch(ctx context.Context, d time.Duration) error {
	for end := time.Now().Add(d); ; {
		t.glance(ctx)
		left := time.Until(end)
		if left <= 0 {
			return nil
		}
		if err := pause(ctx, min(glance, left)); err != nil {
			return err
		}
	}
}

func (t *teller) glance(ctx context.Context) {
	t.last = t.world.see(ctx)
	t.chronicle.observe(t.last)
	t.screen.progress(t.last, t.last.at.Sub(t.began))
}

// outcome says what came of a step, in a few words.
func (t *teller) outcome(s step, before sight) string {
	now := t.last
	switch {
	case now.ended:
		return fmt.Sprintf("exit code %d", now.code)
	case now.log.refused > before.log.refused:
		return fmt.Sprintf("refused: epoch %d goes on", now.status.Serving)
	case now.log.takenBack > before.log.takenBack:
		return fmt.Sprintf("taken back; epoch %d serves", now.status.Serving)
	case now.status.Serving > before.status.Serving:
		return fmt.Sprintf("epoch %d serves", now.status.Serving)
	case now.log.unchanged > before.log.unchanged:
		return fmt.Sprintf("no restart: epoch %d goes on", now.status.Serving)
	case now.loadEnded:
		return fmt.Sprintf("%s of %s failed", report.Count(now.failed), report.Count(now.done+now.failed))
	}
	return s.want.what
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
