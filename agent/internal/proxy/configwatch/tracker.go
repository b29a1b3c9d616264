package configwatch

import "time"

// pace is how patient a tracker is.
type pace struct{ settle, max time.Duration }

// verdict is what one look at a file means.
type verdict int

const (
	quiet   verdict = iota // nothing to tell (yet)
	settled                // new content, to be reported
	lost                   // not there, and for so long that it's no swap
)

// tracker decides for one file when a change is reported. It is a value: no
// clock, no file. Times are the caller's; "" is content nobody could read.
type tracker struct {
	reported string    // content last reported, or the baseline
	since    time.Time // first sign of a change that isn't reported; zero: none
	seen     string    // content of the last look, when it isn't the reported one
	seenAt   time.Time // the look that first saw it
	gone     time.Time // the first of the looks in a row that could not read it
	due      time.Time // the next look; zero: at the next event or poll
	lookedAt time.Time
	complete bool // a rename or swap was seen: what the next look finds is whole
}

// noticed takes an event. A rename is looked at now. Of anything else the first
// is too, but a flood of events is looked at once per settle: a look may read
// 64 MiB.
func (t tracker) noticed(now time.Time, complete bool, p pace) tracker {
	if t.since.IsZero() {
		t.since = now
	}
	switch {
	case complete:
		t.complete, t.due = true, now
	case t.due.IsZero():
		t.due = later(now, t.lookedAt.Add(p.settle))
	}
	return t
}

// looked takes what a look at the file found.
func (t tracker) looked(now time.Time, found string, p pace) (tracker, verdict) {
	whole := t.complete
	t.complete, t.lookedAt, t.due = false, now, time.Time{}
	if found == "" {
		return t.missed(now, p)
	}
	t.gone = time.Time{}
	if found == t.reported {
		return tracker{reported: found, lookedAt: now}, quiet
	}
	if t.since.IsZero() {
		t.since = now
	}
	agreed := found == t.seen && now.Sub(t.seenAt) >= p.settle
	if whole || agreed || now.Sub(t.since) >= p.max {
		return tracker{reported: found, lookedAt: now}, settled
	}
	if found != t.seen {
		t.seen, t.seenAt = found, now
	}
	t.due = earlier(t.seenAt.Add(p.settle), t.since.Add(p.max))
	return t, quiet
}

// missed looks again soon, as in the middle of a swap, but not for ever. The
// time since the first sign goes on: a writer that removes and creates in a
// loop starves nobody either.
func (t tracker) missed(now time.Time, p pace) (tracker, verdict) {
	t.seen = ""
	if t.gone.IsZero() {
		t.gone = now
	}
	if now.Sub(t.gone) >= p.max {
		// What appears after an outage is judged afresh.
		t.since = time.Time{}
		return t, lost
	}
	t.due = now.Add(p.settle)
	return t, quiet
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
