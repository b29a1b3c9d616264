package load

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// result is one finished operation. Times count from the start of the run.
type result struct {
	kind      int // index in the plan
	due       time.Duration
	ended     time.Duration
	err       error
	abandoned bool // ended by the run's context

	notes
}

// notes is what a client writes down while it works, failed or not.
type notes struct {
	epoch      string
	told       int
	idleClosed int
	retried    int
}

// collector owns all counts. Only its run goroutine touches them.
type collector struct {
	plan     Plan
	start    time.Time
	kinds    []tally
	errors   []Error
	timeline timeline

	results chan result      // closed when the last operation has ended
	asks    chan chan Report // a report of now, please
	done    chan struct{}    // closed when final is set
	final   Report
}

// tally is one kind's counts.
type tally struct {
	KindReport
	latency  histogram
	lastOK   time.Duration // when the last success was had, StreamDuration taken off
	lastDue  time.Duration
	errors   int
	finished int
}

func newCollector(p Plan, start time.Time) *collector {
	c := &collector{
		plan: p, start: start, kinds: make([]tally, len(p.Kinds)),
		timeline: timeline{width: p.Bucket},
		// Room for a burst of ends: an operation that waits here has already
		// been measured.
		results: make(chan result, 1024), asks: make(chan chan Report), done: make(chan struct{}),
	}
	for i, k := range p.Kinds {
		c.kinds[i].KindReport = KindReport{Kind: k.Kind, TLS: k.TLS, Epochs: map[string]int{}}
		c.kinds[i].lastOK = -1
	}
	return c
}

// run counts until results is closed. counts gives what schedulers count.
func (c *collector) run(counts func(kind int) (started, overrun int)) {
	defer close(c.done)
	for {
		select {
		case r, more := <-c.results:
			if !more {
				c.final = c.report(counts)
				return
			}
			c.add(r)
		case reply := <-c.asks:
			reply <- c.report(counts)
		}
	}
}

// snapshot asks the running collector, or returns its last word.
func (c *collector) snapshot() Report {
	reply := make(chan Report, 1)
	select {
	case c.asks <- reply:
		return <-reply
	case <-c.done:
		return c.final.clone()
	}
}

func (c *collector) add(r result) {
	k := &c.kinds[r.kind]
	k.finished++
	k.ToldToClose += r.told
	k.IdleClosed += r.idleClosed
	k.Retried += r.retried
	if r.epoch != "" {
		k.Epochs[r.epoch]++
	}
	if r.err == nil && r.retried > 0 && c.plan.Strict {
		r.err = errRetried
	}
	switch {
	case r.abandoned:
		k.Abandoned++
	case r.err != nil:
		k.lastDue = max(k.lastDue, r.due)
		c.fail(k, r)
		c.timeline.add(r, 0)
	default:
		k.lastDue = max(k.lastDue, r.due)
		c.timeline.add(r, k.succeed(r, c.plan.Kinds[r.kind].StreamDuration))
	}
}

// succeed returns the latency of a success that should have taken nominal.
func (k *tally) succeed(r result, nominal time.Duration) time.Duration {
	k.OK++
	latency := max(r.ended-r.due-nominal, 0)
	k.latency.add(latency)
	at := r.due + latency // as if the nominal duration took no time
	if k.lastOK < 0 {
		k.lastOK = 0 // the first gap begins with the run
	}
	k.LongestGap = max(k.LongestGap, at-k.lastOK)
	k.lastOK = max(k.lastOK, at)
	return latency
}

func (c *collector) fail(k *tally, r result) {
	name := heading(r.err)
	k.Failed++
	*k.counter(name)++
	if k.errors++; k.errors <= c.plan.MaxErrors {
		c.errors = append(c.errors, Error{
			Kind: k.Kind, TLS: k.TLS, Offset: r.ended, Heading: name, Epoch: r.epoch, Message: r.err.Error(),
		})
	}
}

func (c *collector) report(counts func(int) (int, int)) Report {
	r := Report{
		Start: c.start, Duration: time.Since(c.start),
		Errors: c.errors, Timeline: c.timeline.buckets,
	}
	for i := range c.kinds {
		started, overrun := counts(i)
		r.Kinds = append(r.Kinds, c.kinds[i].report(started, overrun))
	}
	r = r.clone()
	slices.SortStableFunc(r.Errors, func(a, b Error) int { return cmp.Compare(a.Offset, b.Offset) })
	return r
}

func (k *tally) report(started, overrun int) KindReport {
	r := k.KindReport
	r.Started, r.Overrun = started, overrun
	r.Outstanding = started - k.finished
	r.P50, r.P90, r.P99 = k.latency.quantile(0.50), k.latency.quantile(0.90), k.latency.quantile(0.99)
	r.Max = k.latency.max
	// What failed after the last success is a gap as well.
	r.LongestGap = max(r.LongestGap, k.lastDue-max(k.lastOK, 0))
	return r
}

func (r Report) clone() Report {
	r.Kinds, r.Timeline = slices.Clone(r.Kinds), append([]Bucket{}, r.Timeline...)
	r.Errors = append([]Error{}, r.Errors...) // empty, not null, in JSON
	for i := range r.Kinds {
		r.Kinds[i].Epochs = maps.Clone(r.Kinds[i].Epochs)
	}
	for i, b := range r.Timeline {
		r.Timeline[i] = b.clone()
	}
	return r
}
