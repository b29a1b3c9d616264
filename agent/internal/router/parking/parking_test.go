package parking

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func pool(queue int, workers ...Worker) *Pool {
	p := New(Limits{})
	p.Set(Limits{Queue: queue, Park: time.Minute}, workers)
	return p
}

func must(t *testing.T, p *Pool) *Lease {
	t.Helper()
	l, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// parked is a request on its way.
type parked struct {
	lease *Lease
	err   error
	after time.Duration
}

// park starts a request, and returns when it is parked or over.
func park(ctx context.Context, p *Pool) *parked {
	r := &parked{}
	began := time.Now()
	go func() { // ends with the pool's limit at the latest
		r.lease, r.err = p.Acquire(ctx)
		r.after = time.Since(began)
	}()
	synctest.Wait()
	return r
}

func TestTheLeastBusyWorkerGetsIt(t *testing.T) {
	p := pool(0, Worker{"a", 3}, Worker{"b", 1}, Worker{"c", 2})
	var got []string
	for range 6 {
		got = append(got, must(t, p).Address)
	}
	if want := []string{"a", "b", "c", "a", "c", "a"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := p.Acquire(t.Context()); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

func TestParkedRequestsResumeInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(2, Worker{"a", 1})
		first := must(t, p)
		one, two := park(t.Context(), p), park(t.Context(), p)
		if _, err := p.Acquire(t.Context()); !errors.Is(err, ErrFull) {
			t.Error(err)
		}
		time.Sleep(3 * time.Second)
		first.Release()
		first.Release() // again: nothing
		synctest.Wait()
		if one.lease == nil || one.lease.Waited != 3*time.Second || !one.lease.Parked || two.lease != nil {
			t.Errorf("%+v, %+v", one, two)
		}
		// The next one queues behind two although two isn't served yet.
		three := park(t.Context(), p)
		one.lease.Release()
		synctest.Wait()
		if two.lease == nil || three.lease != nil {
			t.Errorf("%+v, %+v", two, three)
		}
		two.lease.Release()
		synctest.Wait()
		three.lease.Release()
		if st := p.Stats(); st != (Stats{Workers: 1, Slots: 1}) {
			t.Errorf("%+v", st)
		}
	})
}

func TestParkingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(5, Worker{"a", 1})
		busy := must(t, p)
		gone := errors.New("the client left")
		ctx, cancel := context.WithCancelCause(t.Context())
		leaves, stays, late := park(ctx, p), park(t.Context(), p), park(t.Context(), p)
		time.Sleep(time.Second)
		cancel(gone)
		synctest.Wait()
		if !errors.Is(leaves.err, gone) || p.Stats().Parked != 2 {
			t.Errorf("%+v, %+v", leaves, p.Stats())
		}
		busy.Release()
		synctest.Wait()
		if stays.lease == nil {
			t.Error("who left kept the place")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if !errors.Is(late.err, ErrTimeout) || late.after != time.Minute {
			t.Errorf("%+v", late)
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(5, Worker{"a", 1})
		busy := must(t, p)
		waits := park(t.Context(), p)
		p.Close()
		synctest.Wait()
		if !errors.Is(waits.err, ErrClosed) {
			t.Errorf("%+v", waits)
		}
		busy.Release()
		if _, err := p.Acquire(t.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
}

func TestSetWhileRequestsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool(5)
		nobody := park(t.Context(), p) // no worker at all
		limits := Limits{Queue: 5, Park: time.Minute}
		p.Set(limits, []Worker{{"a", 1}})
		synctest.Wait()
		if nobody.lease == nil || nobody.lease.Address != "a" {
			t.Fatalf("%+v", nobody)
		}
		waits := park(t.Context(), p)
		p.Set(limits, []Worker{{"b", 1}})
		synctest.Wait()
		if waits.lease == nil || waits.lease.Address != "b" {
			t.Fatalf("%+v", waits)
		}
		p.Set(limits, []Worker{{"b", 1}})
		if st := p.Stats(); st.Busy != 1 { // it's still at work
			t.Errorf("%+v", st)
		}
		nobody.lease.Release() // of a worker that left
		if st := p.Stats(); st.Busy != 1 {
			t.Errorf("%+v", st)
		}
		waits.lease.Release()
	})
}

// Whoever comes, leaves, is late or in a hurry: no slot is lost, none is given twice.
func TestNoSlotIsLostOrGivenTwice(t *testing.T) {
	p := New(Limits{})
	p.Set(Limits{Queue: 20, Park: 3 * time.Millisecond}, []Worker{{"a", 2}, {"b", 1}})
	var mu sync.Mutex
	at := map[string]int{}
	var all sync.WaitGroup
	for i := range 500 {
		all.Go(func() {
			time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(4))*time.Millisecond)
			defer cancel()
			l, err := p.Acquire(ctx)
			if err != nil {
				return
			}
			mu.Lock()
			at[l.Address]++
			if at["a"] > 2 || at["b"] > 1 {
				t.Errorf("%d: too many: %v", i, at)
			}
			mu.Unlock()
			time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond)
			mu.Lock()
			at[l.Address]--
			mu.Unlock()
			l.Release()
		})
	}
	all.Wait()
	if st := p.Stats(); st != (Stats{Workers: 2, Slots: 3}) {
		t.Errorf("%+v", st)
	}
}
