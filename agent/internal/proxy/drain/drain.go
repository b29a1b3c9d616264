// Package drain ends an Envoy without cutting its connections.
//
// [Stop] is the supervisor's own: it asks Envoys to drain and waits until none
// has a connection left. [Run] is the whole end of a pod with an Envoy in it:
// readiness falls, the drain delay passes, Envoy drains, what stands beside it
// finishes, and a marker releases the Envoy container's preStop hook (the waiter,
// package wait). Its decisions are in one pure function, next.
package drain

import (
	"context"
	"log/slog"
	"time"
)

// Target is one Envoy that is to be stopped.
type Target struct {
	Epoch int
	Done  <-chan struct{}                    // closed when its process has ended
	Ask   func(context.Context) error        // tells its clients to go
	Count func(context.Context) (int, error) // connections of its listeners
}

// callTime is what one call to an Envoy may take.
const callTime = 2 * time.Second

// sayAgain keeps a thousand connections that leave one by one to a few lines.
const sayAgain = 5 * time.Second

// Stop asks the newest to drain and waits until none of all has a connection
// left, twice in a row: true. When ctx ends first, or the newest can't be
// reached and nobody can count: false. A count that failed is not zero.
func Stop(ctx context.Context, newest Target, all []Target, log *slog.Logger) bool {
	if err := call(ctx, newest.Ask); err != nil {
		log.Warn("stop: the newest epoch can't be asked to drain", "epoch", newest.Epoch, "error", err)
	}
	var looks tally
	said := time.Time{}
	for last := -2; ; {
		n := total(ctx, all, log)
		if looks.add(n) {
			return true
		}
		if n != last && time.Since(said) >= sayAgain {
			last, said = n, time.Now()
			log.Info("stop: waiting for connections", "connections", n)
		}
		if !sleep(ctx, looks.pause()) {
			return false
		}
	}
}

// total is the connections of all, unknown when one can't tell.
func total(ctx context.Context, all []Target, log *slog.Logger) int {
	sum := 0
	for _, t := range all {
		n := 0
		err := call(ctx, func(ctx context.Context) (err error) { n, err = t.Count(ctx); return err })
		switch {
		case ended(t):
		case err != nil:
			log.Debug("stop: count failed", "epoch", t.Epoch, "error", err)
			return unknown
		default:
			sum += n
		}
	}
	return sum
}

func ended(t Target) bool {
	select {
	case <-t.Done:
		return true
	default:
		return false
	}
}

func call(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return f(ctx)
}

// sleep returns false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
