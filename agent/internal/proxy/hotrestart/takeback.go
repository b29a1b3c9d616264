package hotrestart

import (
	"context"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// takeBack removes a newcomer without harming anybody (rule 7) → Removed.
func (sh *shell) takeBack(a TakeBack) {
	c := sh.children[a.Epoch]
	if a.Hasty {
		c.hurry.Do(func() { close(c.hasty) })
	}
	if c.removing {
		return // asked again, to hurry
	}
	c.removing = true
	c.stop()
	sh.background(func() {
		<-c.launched
		if c.proc != nil {
			sh.emptyNewcomer(c)
			c.kill()
			c.tail.settle()
		}
		sh.repairSegment(c)
		sh.post(Removed{Epoch: c.epoch, Log: c.tail.lines()})
	})
}

// emptyNewcomer closes the listeners of a newcomer that accepts already, and
// waits for its connections: SIGKILL at once cut 6 (fact 28). Never SIGTERM,
// which ends its parent as well (fact 15). A silent admin: no waiting.
func (sh *shell) emptyNewcomer(c *child) {
	if !c.accepts() {
		return
	}
	ctx, cancel := context.WithTimeout(sh.ctx, sh.cfg.DrainTime)
	defer cancel()
	sh.background(func() { // cuts the wait short; ends with it
		select {
		case <-c.hasty:
			cancel()
		case <-c.proc.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	ask, done := context.WithTimeout(ctx, 2*time.Second)
	err := c.admin.DrainListeners(ask, false, false)
	done()
	if err != nil {
		sh.log.Warn("take back: the newcomer's admin is silent, so it is killed at once", "epoch", c.epoch, "error", err)
		return
	}
	b := backoff{10 * time.Millisecond, 100 * time.Millisecond}
	for zeros := 0; zeros < 2 && b.wait(ctx); {
		if n, err := sh.connections(ctx, c); err == nil && n == 0 {
			zeros++
		} else {
			zeros = 0
		}
	}
}

// accepts tells whether a newcomer may have connections: it is LIVE.
func (c *child) accepts() bool {
	if c.relay == nil {
		return c.parent >= 0 || c.known.Load() != nil
	}
	select {
	case <-c.live:
		return true
	default:
		return false
	}
}

// repairSegment clears the flag that a newcomer leaves behind when it ends
// before it is ready (fact 2): with it every further child would exit 1. No
// child is alive now.
func (sh *shell) repairSegment(c *child) {
	if c.parent < 0 {
		return // epoch 0 makes the segment anew
	}
	blocked, err := envoy.SegmentBlocked(sh.cfg.BaseID)
	if err != nil || !blocked {
		return
	}
	if sh.cfg.NoSegmentRepair {
		sh.log.Error("the shared segment still says \"initializing\", so no further handoff can work, and --segment-repair is off; restart the container")
		return
	}
	if _, err := envoy.RepairSegment(sh.cfg.BaseID); err != nil {
		sh.log.Error("the shared segment still says \"initializing\" and can't be repaired; no further handoff can work until the container is restarted", "error", err)
		return
	}
	sh.log.Info("the shared segment's flag is cleared; the next try can work", "epoch", c.epoch)
}
