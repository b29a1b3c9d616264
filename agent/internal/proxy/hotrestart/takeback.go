package hotrestart

import (
	"context"
	"syscall"
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
	limit := sh.emptyingTime()
	sh.background(func() {
		<-c.launched
		if c.proc != nil {
			sh.emptyNewcomer(c, limit)
			c.kill()
			c.tail.settle()
		}
		repaired := false
		if seat := sh.seatBack(c.epoch); seat != nil { // else somebody else's newcomer is on its way
			repaired = sh.repairSegment(c)
			seat.Release()
		}
		// Without a relay nobody saw whether it came that far.
		took := c.tookAdmin.Load() || c.relay == nil && c.parent >= 0 && c.proc != nil
		sh.tell(c, Removed{Epoch: c.epoch, TookAdmin: took, Repaired: repaired, Log: c.tail.lines()})
	})
}

// emptyingTime bounds the wait for a newcomer's connections. Within the drain
// time each has been told to close on one of its answers; what was begun until
// then may take as long again. At a stop the drain time is all there is.
func (sh *shell) emptyingTime() time.Duration {
	if sh.state.Stage != Running {
		return sh.cfg.DrainTime
	}
	return min(2*sh.cfg.DrainTime, sh.cfg.ParentShutdownTime)
}

// emptyNewcomer closes the listeners of a newcomer that accepts already, has
// its connections told to close, and waits until they have: SIGKILL at once cut
// 6 (fact 28). Never SIGTERM, which ends its parent as well (fact 15). A silent
// admin: no waiting.
func (sh *shell) emptyNewcomer(c *child, limit time.Duration) {
	if !c.accepts() {
		return
	}
	ctx, cancel := context.WithTimeout(sh.ctx, limit)
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
	if err := sh.askToLeave(ctx, c); err != nil {
		sh.log.Warn("take back: the newcomer can't be asked to close its listeners, so it is killed at once", "epoch", c.epoch, "error", err)
		return
	}
	b := backoff{10 * time.Millisecond, 100 * time.Millisecond}
	k := counter{child: c}
	for zeros := 0; zeros < 2 && b.wait(ctx); {
		if n, err := k.all(ctx); err == nil && n == 0 {
			zeros++
		} else {
			zeros = 0
		}
	}
}

// askToLeave makes a newcomer close its listeners at once and then its
// connections as they are answered.
//
// Measured with 40 kept connections: the plain drain closes the listeners, so
// that every new connection is the parent's. Kept ones are told to close over
// the drain time by 1.40 (none in its first second); 1.36.4 and 1.39.3 never
// tell them, unless asked for graceful&skip_exit as well. Asked for that alone
// or first, the newcomer would go on to accept (fact 28: 3 cut). Failing its
// health check would tell all of them at their next answer, but then Envoy
// also says x-envoy-immediate-health-check-fail, and its peers would give up
// the whole node, the serving parent included.
func (sh *shell) askToLeave(ctx context.Context, c *child) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	// The parent must never be asked to close its listeners.
	if _, err := ownAdmin(ctx, c); err != nil {
		return err
	}
	// Which listeners it has by now, to count their connections.
	if got, err := c.admin.Resources(ctx, c.input.asksXDS()); err == nil {
		c.known.Store(&got)
	}
	if err := c.admin.DrainListeners(ctx, false, false); err != nil {
		return err
	}
	return c.admin.DrainListeners(ctx, true, true)
}

// accepts tells whether a newcomer may have connections: it is LIVE. In plain
// mode nobody takes back one that is: its parent has drained. Each moment counts
// there, as one that isn't may be soon.
func (c *child) accepts() bool {
	if c.relay == nil {
		// The first epoch may be LIVE without our knowing, if we were stopped since its
		// fork; its admin tells.
		return c.parent < 0
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
// child is alive now. It tells whether it had to.
func (sh *shell) repairSegment(c *child) bool {
	if c.parent < 0 {
		return false // epoch 0 makes the segment anew
	}
	return sh.repair(c.epoch, c.follows)
}

// repair clears it, the epoch's seat being in our hands, unless a newcomer of
// another supervisor in another seat may have set it. parent is another supervisor's
// Envoy that this epoch follows.
func (sh *shell) repair(epoch int, parent envoy.Sitter) bool {
	blocked, err := envoy.SegmentBlocked(sh.cfg.BaseID)
	if err != nil || !blocked || sh.newcomerBut(epoch, parent) {
		return false
	}
	if sh.cfg.NoSegmentRepair {
		sh.log.Error("the shared segment still says \"initializing\", so no further handoff can work, and --segment-repair is off; restart the container")
		return false
	}
	if _, err := envoy.RepairSegment(sh.cfg.BaseID); err != nil {
		sh.log.Error("the shared segment still says \"initializing\" and can't be repaired; no further handoff can work until the container is restarted", "error", err)
		return false
	}
	sh.log.Info("the shared segment's flag is cleared; the next try can work", "epoch", epoch)
	return true
}

// kill ends a child for good and waits until it was reaped.
func (c *child) kill() {
	_ = c.proc.Signal(syscall.SIGKILL)
	<-c.proc.Done()
}
