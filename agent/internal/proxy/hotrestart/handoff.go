package hotrestart

import (
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// This file is the record of tries: what status, history, metrics and the trace
// tell of them.

// Handoff is one try at a handoff, from its trigger to how it ended. Times that
// are zero stand for steps it never came to.
type Handoff struct {
	From, To int // From is -1 at a first start
	Triggers []Trigger
	Outcome  string   // control.Committed, Refused, Failed, Superseded or Stopping
	Step     string   // what failed
	Text     string   // and why
	Forced   []string // what was missing when --force committed it

	Since time.Time // its first trigger
	Prep
	LaunchedAt time.Time
	ForkedAt   time.Time
	LiveAt     time.Time
	FailedAt   time.Time // since then it is being taken back
	At         time.Time // committed, refused, or nothing of it is left
}

// historySize is how many tries are remembered: a morning's, not a year's.
const historySize = 20

// conclude ends a try.
func (t *turn) conclude(h Handoff) *Handoff {
	h.At = t.at
	// Concat copies: older states share the slice.
	t.History = slices.Concat(t.History[max(0, len(t.History)+1-historySize):], []Handoff{h})
	t.act(Measure{"handoff.duration", h.At.Sub(h.Since).Seconds(), h.kind()}, Concluded{h})
	if h.Outcome == control.Committed && !h.LiveAt.IsZero() {
		t.act(Measure{"commit_wait.duration", h.At.Sub(h.LiveAt).Seconds(), ""})
	}
	return &h
}

// kind keeps first starts, which hand nothing over, apart from handoffs.
func (h *Handoff) kind() string {
	if h.Outcome == control.Committed && h.From < 0 {
		return "started"
	}
	return h.Outcome
}

// handoff is what a newcomer has come to.
func (g *Generation) handoff(from int, outcome string) Handoff {
	return Handoff{
		From: from, To: g.Epoch, Triggers: g.Want.Triggers, Outcome: outcome,
		Since: g.Want.Since, Prep: g.Prep, LaunchedAt: g.LaunchedAt, ForkedAt: g.ForkedAt, LiveAt: g.LiveAt,
	}
}

// undone is the record of a newcomer of which nothing is left.
func (t *turn) undone(g *Generation) Handoff {
	h := g.handoff(t.parentOf(), control.Failed)
	if f := t.LastFailure; f != nil && f.Epoch == g.Epoch {
		h.Step, h.Text, h.FailedAt = f.Step, f.Text, f.At
	}
	switch {
	case g.Superseded:
		h.Outcome = control.Superseded
	case h.FailedAt.IsZero() || h.FailedAt.Before(g.LaunchedAt): // removed for the stop
		h.Outcome, h.Step, h.Text, h.FailedAt = control.Stopping, "", "", time.Time{}
	}
	return h
}

// parentOf is whom a newcomer takes over from, -1 when nobody lives.
func (t *turn) parentOf() int {
	if h := t.heir(); h != nil {
		return h.Epoch
	}
	return -1
}

// steps are the milliseconds of a committed handoff, step by step.
func (h *Handoff) steps() control.StepTimes {
	return control.StepTimes{
		Prepare: between(h.Since, h.LaunchedAt), Live: between(h.LaunchedAt, h.LiveAt), Verify: between(h.LiveAt, h.verifiedAt()),
	}
}

// status is what history tells.
func (h *Handoff) status() control.TryStatus {
	t := control.TryStatus{
		HandoffStatus: control.HandoffStatus{At: h.At, From: h.From, To: h.To, Milliseconds: h.steps()},
		Outcome:       h.Outcome, Step: h.Step, Error: h.Text, Forced: h.Forced,
		DurationMS: between(h.Since, h.At),
	}
	for _, by := range h.Triggers {
		t.Triggers = append(t.Triggers, by.String())
	}
	return t
}

// between is 0 when a step was not come to.
func between(from, to time.Time) float64 {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return control.Milliseconds(to.Sub(from))
}
