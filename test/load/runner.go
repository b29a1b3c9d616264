package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// client does the operations of one kind. run may be called many times at
// once; close comes after the last of them.
type client interface {
	// run does one operation before ctx's deadline. Its error says why the
	// operation failed; heading sorts it.
	run(ctx context.Context, n *notes) error
	close()
}

// Runner is a running load.
type Runner struct {
	plan    Plan
	clients []client
	counts  []counts
	collect *collector
	start   time.Time

	abandon    context.CancelFunc // ends the operations
	halt       context.CancelFunc // ends only the schedulers
	schedulers sync.WaitGroup
	operations sync.WaitGroup
	stopped    sync.Once
}

// counts is what a kind's scheduler counts while results are being collected.
type counts struct{ started, overrun, outstanding atomic.Int64 }

// Start begins the load. It returns an error only for a plan that can't be
// run; a proxy that isn't there shows in the counts. When ctx ends,
// everything is abandoned at once; Stop must be called in any case.
func Start(ctx context.Context, p Plan) (*Runner, error) {
	p, err := p.withDefaults()
	if err != nil {
		return nil, err
	}
	clients := make([]client, len(p.Kinds))
	for i, k := range p.Kinds {
		clients[i] = makers[k.Kind](newDialer(p, k), k)
	}
	return start(ctx, p, clients, time.Now()), nil
}

// start runs a plan whose schedule begins at begin.
func start(ctx context.Context, p Plan, clients []client, begin time.Time) *Runner {
	ctx, abandon := context.WithCancel(ctx)
	scheduling, halt := context.WithCancel(ctx)
	r := &Runner{
		plan: p, clients: clients, counts: make([]counts, len(p.Kinds)),
		start: begin, abandon: abandon, halt: halt,
	}
	r.collect = newCollector(p, r.start)
	// The collector; Stop joins it by its done channel.
	go r.collect.run(func(i int) (int, int) {
		return int(r.counts[i].started.Load()), int(r.counts[i].overrun.Load())
	})
	for i, k := range p.Kinds {
		if k.Concurrency > 0 {
			for worker := range k.Concurrency {
				// A closed loop's worker; Stop joins it.
				r.schedulers.Go(func() { r.repeat(scheduling, ctx, i, worker) })
			}
			continue
		}
		// An open loop's clock; Stop joins it.
		r.schedulers.Go(func() { r.schedule(scheduling, ctx, i) })
	}
	return r
}

// Snapshot is the report until now. After Stop it is the final one.
func (r *Runner) Snapshot() Report { return r.collect.snapshot() }

// Stop starts no more operations, waits for those that are out (at most
// their StreamDuration and Timeout), ends every goroutine and returns the
// final report. It may be called more than once.
func (r *Runner) Stop() Report {
	r.stopped.Do(func() {
		r.halt()
		r.schedulers.Wait()
		r.operations.Wait()
		r.abandon()
		for _, c := range r.clients {
			c.close()
		}
		close(r.collect.results)
	})
	<-r.collect.done
	return r.collect.snapshot()
}

// schedule starts operation n at n/Rate. Late or not, an operation's time
// counts from there: a load that waits for the server it measures would hide
// exactly the pauses it is looking for (coordinated omission).
func (r *Runner) schedule(ctx, work context.Context, kind int) {
	k, c := r.plan.Kinds[kind], &r.counts[kind]
	// Kinds of the same rate don't start in one burst.
	phase := float64(kind) / float64(len(r.plan.Kinds))
	for n := 0; ; n++ {
		due := time.Duration((float64(n) + phase) / k.Rate * float64(time.Second))
		if !sleepUntil(ctx, r.start.Add(due)) {
			return
		}
		if c.outstanding.Load() >= int64(k.MaxOutstanding) {
			c.overrun.Add(1)
			continue
		}
		c.outstanding.Add(1)
		// One operation, bounded by its deadline; Stop joins it.
		r.operations.Go(func() {
			defer c.outstanding.Add(-1)
			_ = r.operate(work, kind, due)
		})
	}
}

// afterFailure keeps a closed loop from spinning at a port that refuses.
const afterFailure = 100 * time.Millisecond

// repeat is one worker of a closed loop.
func (r *Runner) repeat(ctx, work context.Context, kind, worker int) {
	k := r.plan.Kinds[kind]
	// Spread, so that streams don't all end at the same moment.
	next := r.start.Add(k.StreamDuration * time.Duration(worker) / time.Duration(k.Concurrency))
	for sleepUntil(ctx, next) {
		next = time.Time{}
		if err := r.operate(work, kind, time.Since(r.start)); err != nil {
			next = time.Now().Add(afterFailure)
		}
	}
}

func (r *Runner) operate(ctx context.Context, kind int, due time.Duration) error {
	r.counts[kind].started.Add(1)
	op, cancel := context.WithTimeout(ctx, r.plan.Timeout+r.plan.Kinds[kind].StreamDuration)
	defer cancel()
	res := result{kind: kind, due: due}
	res.err = r.clients[kind].run(op, &res.notes)
	res.ended = time.Since(r.start)
	res.abandoned = res.err != nil && ctx.Err() != nil
	r.collect.results <- res
	return res.err
}

// sleepUntil is false when ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	wait := time.Until(at)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
