package hotrestart

import (
	"context"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

const (
	guardPeriod = 10 * time.Second // a look costs us 0.5 ms, all in all, and Envoy 0.1 ms
	guardTime   = 5 * time.Second  // of one answer; Envoy's stats flush may block it for 0.5 s (fact 25)
)

// guard watches the serving epoch's admin over a kept connection: it need not
// say who it is (rule 12), and costs Envoy 0.1 ms a look (fact 23). One watch at
// a time: the next epoch's ends it, and with it the kept connection, which may be
// all that an idle parent still has.
func (sh *shell) guard(c *child) {
	sh.unguard()
	ctx, cancel := context.WithCancel(c.ctx)
	sh.unguard = cancel
	sh.background(func() {
		defer cancel()
		defer c.admin.Close()
		silent := false
		period := min(guardPeriod, sh.cfg.AdminUnresponsiveDeadline/3)
		b := backoff{period, period}
		for b.wait(ctx) {
			look, done := context.WithTimeout(ctx, guardTime)
			_, err := c.admin.Ready(look)
			done()
			if now := err != nil; now != silent && ctx.Err() == nil {
				silent = now
				sh.tell(c, Silenced{Epoch: c.epoch, Ends: !silent})
			}
		}
	})
}

// askStats asks an epoch's main thread by the hot-restart socket → Asked. What
// remains of a dead newcomer has the name for the answer, and makes way.
func (sh *shell) askStats(c *child) {
	before := sh.inPlaceOf(c.epoch + 1)
	sh.background(func() {
		if err := sh.makeWayToAsk(c, before); err != nil {
			sh.log.Debug("hot-restart socket", "epoch", c.epoch, "error", err)
			sh.tell(c, Asked{Epoch: c.epoch})
			return
		}
		err := envoy.AskStats(c.ctx, sh.dirs.Socket(c.epoch, "parent", c.epoch), sh.dirs.Socket(c.epoch, "child", c.epoch+1), guardTime)
		if err != nil {
			sh.log.Debug("hot-restart socket", "epoch", c.epoch, "error", err)
		}
		sh.tell(c, Asked{Epoch: c.epoch, Answers: err == nil})
	})
}

// makeWayToAsk gives an epoch guardTime to read what a dead newcomer asked it.
func (sh *shell) makeWayToAsk(c *child, r *remains) error {
	ctx, cancel := context.WithTimeout(c.ctx, guardTime)
	defer cancel()
	return sh.makeWay(ctx, r, func() {})
}
