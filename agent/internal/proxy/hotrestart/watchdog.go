package hotrestart

import (
	"context"
	"time"
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

// askStats asks an epoch's main thread by its hot-restart socket → Asked.
func (sh *shell) askStats(c *child) {
	sh.background(func() {
		ctx, cancel := sh.ownTime(c.ctx, guardTime)
		defer cancel()
		sh.tell(c, Asked{Epoch: c.epoch, Answers: c.asParent.Responds(ctx)})
	})
}

// ownTime ends after so much of our own time. A supervisor that was stopped would
// find an ordinary deadline over and the answer unread, and must not take a
// healthy epoch for one that hangs: a second that took two doesn't count.
func (sh *shell) ownTime(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	sh.background(func() {
		defer cancel()
		b := backoff{time.Second, time.Second}
		for left := d; left > 0; {
			start := time.Now()
			if !b.wait(ctx) {
				return
			}
			if time.Since(start) < 2*time.Second {
				left -= time.Second
			}
		}
	})
	return ctx, cancel
}
