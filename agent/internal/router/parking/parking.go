// Package parking gives requests to the workers of a pool, and parks those that
// come while all workers are busy.
package parking

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// Why a request gets no worker.
var (
	ErrFull    = errors.New("all workers are busy and no more requests can be parked")
	ErrTimeout = errors.New("no worker became free in time")
	ErrClosed  = errors.New("the router is stopping")
)

// Worker takes as many requests at once as it has slots.
type Worker struct {
	Address string
	Slots   int
}

// Limits of parking.
type Limits struct {
	Queue int           // most requests that are parked at once
	Park  time.Duration // longest that one is
}

// Stats is where a pool stands.
type Stats struct {
	Workers int `json:"workers"`
	Slots   int `json:"slots"`
	Busy    int `json:"busy"`
	Parked  int `json:"parked"`
}

// Pool is one pool. It's safe for concurrent use.
//
// First come, first served: who comes while somebody is parked is parked behind
// them, and a slot that becomes free goes to the oldest.
type Pool struct {
	mu      sync.Mutex
	limits  Limits
	workers []*worker
	from    int        // where the next search begins, so that equals take turns
	parked  *list.List // of *ticket
	closed  bool
}

type worker struct {
	Worker
	busy int
}

// ticket is a parked request. It's given at most one worker.
type ticket struct{ got chan *worker }

// New is a pool without workers: everybody is parked.
func New(l Limits) *Pool { return &Pool{limits: l, parked: list.New()} }

// Set changes limits and workers. What runs on a worker that isn't there any
// more goes on; parked requests get the slots that are new.
func (p *Pool) Set(l Limits, workers []Worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[string]*worker{}
	for _, w := range p.workers {
		known[w.Address] = w
	}
	p.limits, p.workers, p.from = l, nil, 0
	for _, w := range workers {
		k := known[w.Address]
		if k == nil {
			k = &worker{}
		}
		k.Worker = w
		p.workers = append(p.workers, k)
	}
	p.resume()
}

// Lease is a slot of a worker.
type Lease struct {
	Address string
	Waited  time.Duration // 0: never parked
	Parked  bool

	pool *Pool
	once sync.Once
	on   *worker
}

// Release gives the slot back. It may be called again.
func (l *Lease) Release() {
	l.once.Do(func() { l.pool.release(l.on) })
}

// Acquire returns a slot; it blocks while there is none, at most as long as the
// limits say and ctx lasts.
func (p *Pool) Acquire(ctx context.Context) (*Lease, error) {
	w, t, err := p.enter()
	if w != nil || err != nil {
		return p.lease(w, 0, false), err
	}
	return p.wait(ctx, t)
}

func (p *Pool) lease(w *worker, waited time.Duration, parked bool) *Lease {
	if w == nil {
		return nil
	}
	return &Lease{Address: w.Address, Waited: waited, Parked: parked, pool: p, on: w}
}

// enter returns a worker, or a place in the queue.
func (p *Pool) enter() (*worker, *list.Element, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, nil, ErrClosed
	}
	if p.parked.Len() == 0 {
		if w := p.free(); w != nil {
			w.busy++
			return w, nil, nil
		}
	}
	if p.parked.Len() >= p.limits.Queue {
		return nil, nil, ErrFull
	}
	return nil, p.parked.PushBack(&ticket{make(chan *worker, 1)}), nil
}

func (p *Pool) wait(ctx context.Context, place *list.Element) (*Lease, error) {
	began := time.Now()
	p.mu.Lock()
	limit := time.NewTimer(p.limits.Park)
	p.mu.Unlock()
	defer limit.Stop()
	var err error
	select {
	case w, ok := <-place.Value.(*ticket).got:
		if !ok {
			return nil, ErrClosed
		}
		return p.lease(w, time.Since(began), true), nil
	case <-limit.C:
		err = ErrTimeout
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.leave(place)
	return nil, err
}

// leave gives up a place, and the slot that may have come in the same moment.
func (p *Pool) leave(place *list.Element) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parked.Remove(place)
	select {
	case w, ok := <-place.Value.(*ticket).got:
		if ok {
			w.busy--
			p.resume()
		}
	default:
	}
}

func (p *Pool) release(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.busy--
	p.resume()
}

// resume gives what is free to the oldest.
func (p *Pool) resume() {
	for p.parked.Len() > 0 {
		w := p.free()
		if w == nil {
			return
		}
		w.busy++
		p.parked.Remove(p.parked.Front()).(*ticket).got <- w
	}
}

// free is the least busy worker that has a slot; equals take turns.
func (p *Pool) free() *worker {
	var best *worker
	at := 0
	for i := range p.workers {
		k := (p.from + i) % len(p.workers)
		w := p.workers[k]
		if w.busy < w.Slots && (best == nil || w.busy < best.busy) {
			best, at = w, k
		}
	}
	if best != nil {
		p.from = (at + 1) % len(p.workers)
	}
	return best
}

// Close refuses who is parked and who comes. What runs goes on.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for p.parked.Len() > 0 {
		close(p.parked.Remove(p.parked.Front()).(*ticket).got)
	}
}

// Stats tells where the pool stands..
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := Stats{Workers: len(p.workers), Parked: p.parked.Len()}
	for _, w := range p.workers {
		st.Slots += w.Slots
		st.Busy += w.busy
	}
	return st
}
