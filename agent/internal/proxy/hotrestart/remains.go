package hotrestart

import (
	"context"
	"errors"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// remains is what stays of a dead newcomer while its parent lives: a parent
// that was stopped or busy answers it later, and aborts if nobody has its name.
type remains struct {
	*child
	sink  *envoy.Sink
	doubt time.Time // zero: all was answered when it was buried; else until when an answer may come that was begun before
}

// bury takes a dead child's relay and names away, at once or, if a parent lives
// that may still answer it, later.
func (sh *shell) bury(c *child) {
	sh.buryChildrenOf(c.epoch)
	if c.proc == nil || sh.children[c.parent] == nil { // it asked nothing, or nobody answers
		sh.tearDown(c)
		return
	}
	sink, err := envoy.OpenSink(sh.dirs.Socket(c.epoch, "child", c.epoch))
	if err != nil {
		sh.log.Warn("cleaning up", "epoch", c.epoch, "error", err)
		sh.tearDown(c)
		return
	}
	r := &remains{child: c, sink: sink}
	if !r.quiet() {
		r.doubt = time.Now().Add(sendRetry)
	}
	sh.remains[c.epoch] = r
}

// buryChildrenOf: a dead parent answers nobody.
func (sh *shell) buryChildrenOf(parent int) {
	for epoch, r := range sh.remains {
		if r.parent == parent {
			delete(sh.remains, epoch)
			sh.end(r)
		}
	}
}

func (sh *shell) end(r *remains) {
	r.sink.Close()
	sh.tearDown(r.child)
}

// inPlaceOf are the remains at the seat that an epoch is about to take.
func (sh *shell) inPlaceOf(epoch int) *remains {
	for e, r := range sh.remains {
		if e%envoy.Seats == epoch%envoy.Seats {
			delete(sh.remains, e)
			return r
		}
	}
	return nil
}

// makeWay ends what remains at a newcomer's seat, once the parent has read what
// the dead one asked: its answers would be taken for the newcomer's. A parent
// that reads nothing until ctx ends is stopped, and would keep the newcomer
// waiting as well. waits is called when it takes longer.
func (sh *shell) makeWay(ctx context.Context, r *remains, waits func()) error {
	if r == nil {
		return nil
	}
	if !r.doubt.IsZero() { // even if all is read by now: perhaps only just
		waits()
		if !r.awaitRead(ctx) {
			back := func(sh *shell) { sh.remains[r.epoch] = r }
			if sh.ask(context.WithoutCancel(sh.ctx), back) != nil {
				sh.end(r) // the supervisor has ended
			}
			return errors.New(unread)
		}
	}
	sh.end(r)
	return nil
}

const unread = "the serving epoch has not read what an earlier newcomer asked it: is it stopped?"

const (
	// answering is what an answer takes once its request was read; it takes more
	// only with very many stats.
	answering = 100 * time.Millisecond
	// sendRetry is the pause of an Envoy whose answer found nobody behind the
	// name, as between a newcomer's death and its sink (fact 4): one second.
	sendRetry = 1200 * time.Millisecond
)

// allRead: in plain mode there is no relay and nobody knows.
func (r *remains) allRead() bool { return r.relay == nil || r.relay.AllRead() }

// quiet: what was passed is not only read but answered, before the newcomer died;
// its burial comes a moment later. One that gives way 10 s after its start dies
// at its second stats flush.
func (r *remains) quiet() bool {
	return r.allRead() && (r.relay == nil || time.Since(r.relay.LastPassed()) > sendRetry)
}

func (r *remains) awaitRead(ctx context.Context) bool {
	for b := (backoff{5 * time.Millisecond, answering}); !r.allRead(); {
		if !b.wait(ctx) {
			return false
		}
	}
	last := backoff{pause: max(answering, time.Until(r.doubt))}
	return last.wait(ctx)
}
