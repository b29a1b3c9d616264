// Package report draws what happened to an Envoy under load: the epochs as
// lanes, the rate by who answered, latency, failures, and what each handoff
// took. It makes one HTML file that needs nothing else.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"aether.internal/test/load"
)

// Run is all that is known of one showing. Times without a date count from
// Began.
type Run struct {
	Began    time.Time
	Length   time.Duration
	Steps    []Step
	Lanes    []Lane    // in the order of their beginning
	Handoffs []Handoff // committed ones; the first has no parent
	Refusals []Refusal
	Load     load.Report
	Bucket   time.Duration // of the load's timeline
	Facts    []Fact
	Broken   string // why the story broke off; empty when it didn't
}

// Step is one thing that was done.
type Step struct {
	Title, Say string
	At, Took   time.Duration // until it was as wanted
	Outcome    string
	Failed     bool
}

// Lane is the life of one Envoy.
type Lane struct {
	Epoch        int
	Version, Tag string // of Envoy, and of its bootstrap
	Phases       []Phase
}

// Phase is a part of a life: starting, live, serving, draining, removing or
// ending.
type Phase struct {
	Name     string
	From, To time.Duration
}

// Handoff is a commit, and where its time went.
type Handoff struct {
	From, To int // epochs; From is -1 at the first start
	At       time.Duration
	Waited   time.Duration // for the oldest of three generations to end
	Prepare  time.Duration // the change to the fork: validate, snapshot, relay
	Live     time.Duration // fork to LIVE
	Verify   time.Duration // LIVE to verified
}

// Refusal is an input that did not come to serve.
type Refusal struct {
	At          time.Duration
	Epoch       int
	TakenBack   bool // after it had been started
	Step, Error string
}

// Fact is something about the machine or a version.
type Fact struct{ Name, Text string }

// Failed tells whether anything was dropped or went otherwise than told.
func (r Run) Failed() bool { return r.Broken != "" || r.Load.Failures() > 0 || r.Load.OK() == 0 }

// Verdict is the whole in a sentence or two.
func (r Run) Verdict() string {
	said := r.traffic()
	if r.Broken != "" {
		said += " The story broke off: " + strings.TrimSuffix(r.Broken, ".") + "."
	}
	return said
}

func (r Run) traffic() string {
	n, restarts := r.Load.Started(), plural(len(r.Restarts()), "hot restart")
	switch failed := r.Load.Failures(); {
	case failed > 0:
		return fmt.Sprintf("Dropped: %s of %s operations failed in %s.", Count(failed), Count(n), restarts)
	case r.Load.OK() == 0:
		return "There was no load, so nothing is shown."
	default:
		return fmt.Sprintf("Nothing was dropped: %s operations, %s, 0 failures.", Count(n), restarts)
	}
}

// Restarts are the handoffs from one epoch to the next.
func (r Run) Restarts() []Handoff {
	return slices.DeleteFunc(slices.Clone(r.Handoffs), func(h Handoff) bool { return h.From < 0 })
}

// HandoffTimes are the shortest, the median and the longest of all restarts.
func (r Run) HandoffTimes() (low, median, high time.Duration) {
	all := r.Restarts()
	if len(all) == 0 {
		return 0, 0, 0
	}
	slices.SortFunc(all, func(a, b Handoff) int { return cmp.Compare(a.Total(), b.Total()) })
	return all[0].Total(), all[len(all)/2].Total(), all[len(all)-1].Total()
}

// Total is what the handoff itself took; the wait for a generation is apart.
func (h Handoff) Total() time.Duration { return h.Prepare + h.Live + h.Verify }

// AliveAtOnce is the most Envoys that lived at the same time.
func (r Run) AliveAtOnce() int {
	most := 0
	for _, l := range r.Lanes {
		alive := 0
		for _, other := range r.Lanes {
			if from, to := other.span(); from <= l.begin() && l.begin() < to {
				alive++
			}
		}
		most = max(most, alive)
	}
	return most
}

// Lane is the life of the committed epoch; zero if there is none.
func (r Run) Lane(epoch int) Lane {
	for _, l := range r.Lanes {
		if l.Epoch == epoch && l.Length("serving") > 0 {
			return l
		}
	}
	return Lane{}
}

// Length is how long phases of this name lasted.
func (l Lane) Length(name string) time.Duration {
	var sum time.Duration
	for _, p := range l.Phases {
		if p.Name == name {
			sum += p.To - p.From
		}
	}
	return sum
}

func (l Lane) begin() time.Duration { from, _ := l.span(); return from }

func (l Lane) span() (from, to time.Duration) {
	if len(l.Phases) == 0 {
		return 0, 0
	}
	return l.Phases[0].From, l.Phases[len(l.Phases)-1].To
}

// What is the refusal in a few words.
func (x Refusal) What() string {
	if x.TakenBack {
		return fmt.Sprintf("epoch %d was started and taken back", x.Epoch)
	}
	return fmt.Sprintf("an input for epoch %d was refused (%s)", x.Epoch, x.Step)
}

// Failure tells one failed operation: when, what, and of which bootstrap.
func (r Run) Failure(e load.Error) string {
	text := "at " + Short(r.Load.Start.Sub(r.Began)+e.Offset) + ", " + e.Kind
	if e.TLS {
		text += " with TLS"
	}
	if e.Epoch != "" {
		text += ", answered by " + e.Epoch
	}
	return text + ": " + e.Heading + ": " + e.Message
}

// P99 is the 99th percentile of the fastest and of the slowest kind.
func (r Run) P99() (low, high time.Duration) {
	for _, k := range r.Load.Kinds {
		if k.OK > 0 && (low == 0 || k.P99 < low) {
			low = k.P99
		}
		high = max(high, k.P99)
	}
	return low, high
}

// Worst is the slowest success.
func (r Run) Worst() time.Duration {
	var worst time.Duration
	for _, k := range r.Load.Kinds {
		worst = max(worst, k.Max)
	}
	return worst
}
