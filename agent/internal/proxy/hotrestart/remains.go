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
	sink *envoy.Sink
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
	sh.remains[c.epoch] = &remains{c, sink}
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
// that reads nothing is stopped, and would keep the newcomer waiting as well.
func (sh *shell) makeWay(c *child, r *remains) error {
	switch {
	case r == nil:
		return nil
	case r.allRead():
	case sh.awaitRead(c, r):
	default:
		back := func(sh *shell) { sh.remains[r.epoch] = r }
		if sh.ask(context.WithoutCancel(sh.ctx), back) != nil {
			sh.end(r) // the supervisor has ended
		}
		return errors.New(unread)
	}
	sh.end(r)
	return nil
}

const unread = "the serving epoch has not read what an earlier newcomer asked it: is it stopped?"

// allRead: in plain mode there is no relay and nobody knows.
func (r *remains) allRead() bool { return r.relay == nil || r.relay.AllRead() }

// answering is what an answer takes once its request was read; it takes more
// only with very many stats.
const answering = 100 * time.Millisecond

func (sh *shell) awaitRead(c *child, r *remains) bool {
	sh.tell(c, Unverified{c.epoch, []string{unread}})
	for b := (backoff{5 * time.Millisecond, answering}); !r.allRead(); {
		if !b.wait(c.ctx) {
			return false
		}
	}
	last := backoff{answering, answering}
	return last.wait(c.ctx)
}
