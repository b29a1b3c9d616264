package hotrestart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

// backoff is the pause between two looks: short at first, because a small
// Envoy is LIVE in 50 ms, and a fresh look costs it 1.3 ms CPU (fact 23).
type backoff struct{ pause, most time.Duration }

// wait returns false when ctx ended first.
func (b *backoff) wait(ctx context.Context) bool {
	t := time.NewTimer(b.pause)
	defer t.Stop()
	b.pause = min(b.pause*3/2, b.most)
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// askParent asks what the newcomer must have: the dynamic resources of the
// serving epoch, whose admin will be gone once the newcomer listens (fact 6).
// An admin lost in an earlier failure leaves what it said last.
func (sh *shell) askParent(c, parent *child) *envoy.Resources {
	if parent == nil {
		return nil
	}
	asks := c.input
	if !parent.foreign {
		asks = parent.input
	}
	if !asks.asksXDS() {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, 5*time.Second)
	defer cancel()
	if parent.foreign { // another one may have its address
		if _, err := ownAdmin(ctx, parent); err != nil {
			return parent.known.Load()
		}
	}
	got, err := parent.admin.Resources(ctx, true)
	if err != nil {
		sh.log.Warn("the serving epoch's admin is silent; the newcomer is compared with what it said last", "epoch", parent.epoch, "error", err)
		return parent.known.Load()
	}
	parent.known.Store(&got)
	return &got
}

// watchNewcomer waits for LIVE, then verifies until everything is there or the
// core has decided otherwise.
func (sh *shell) watchNewcomer(c *child) {
	sh.background(func() {
		waiting, live := context.WithCancel(c.ctx)
		told := make(chan struct{})
		sh.background(func() { // until it is LIVE or taken back
			defer close(told)
			sh.tellWhatIsMissing(waiting, c)
		})
		ok := sh.awaitLive(c)
		live()
		<-told // what it lacked before must not come after
		if !ok {
			return
		}
		sh.tell(c, WentLive{c.epoch})
		sh.verify(c)
	})
}

// awaitLive trusts the relay where there is one: drain_listeners is sent when
// the newcomer is LIVE. Elsewhere the admin is asked.
func (sh *shell) awaitLive(c *child) bool {
	if c.relay != nil {
		select {
		case <-c.live:
			return true
		case <-c.ctx.Done():
			return false
		}
	}
	b := backoff{5 * time.Millisecond, 100 * time.Millisecond}
	for b.wait(c.ctx) {
		if identify(c.ctx, c) == nil {
			return true
		}
	}
	return false
}

// untilItMatters: most newcomers are LIVE before anybody wonders why not.
const untilItMatters = time.Second

// tellWhatIsMissing looks at a newcomer that isn't LIVE, now and then, so that
// status, and the failure if it comes to that, say what it waits for.
func (sh *shell) tellWhatIsMissing(ctx context.Context, c *child) {
	b := backoff{untilItMatters, 5 * untilItMatters}
	for b.wait(ctx) {
		if _, err := ownAdmin(ctx, c); err != nil {
			continue // the admin is dark in a long start, or still the parent's
		}
		got, err := c.admin.Resources(ctx, c.input.asksXDS())
		if err == nil && ctx.Err() == nil {
			sh.tell(c, Unverified{c.epoch, envoy.Missing(c.input.boot, c.want, got)})
		}
	}
}

// ownAdmin asks who answers, on a fresh connection (rule 12): with a shared
// admin it is the parent until the newcomer listens.
func ownAdmin(ctx context.Context, c *child) (envoy.ServerInfo, error) {
	info, err := c.admin.ServerInfo(ctx)
	if err == nil && info.Epoch != c.epoch {
		err = fmt.Errorf("admin %s answers for epoch %d, not %d", c.admin.Address(), info.Epoch, c.epoch)
	}
	return info, err
}

// identify wants the epoch itself to answer, and to be LIVE.
func identify(ctx context.Context, c *child) error {
	info, err := ownAdmin(ctx, c)
	if err == nil && info.State != "LIVE" {
		err = fmt.Errorf("state %s", info.State)
	}
	return err
}

func (sh *shell) verify(c *child) {
	b := backoff{10 * time.Millisecond, 500 * time.Millisecond}
	answered := false
	for {
		got, missing := sh.look(c)
		if c.ctx.Err() != nil {
			return
		}
		if got != nil {
			c.known.Store(got) // complete or not: its connections must be counted
		}
		if got != nil && !answered {
			answered = true
			sh.tell(c, Answered{c.epoch})
		}
		if len(missing) == 0 {
			sh.tell(c, Verified{c.epoch})
			return
		}
		sh.tell(c, Unverified{c.epoch, missing})
		if !b.wait(c.ctx) {
			return
		}
	}
}

// look is one look at a LIVE newcomer (rule 2). got is nil when its admin did
// not answer.
func (sh *shell) look(c *child) (got *envoy.Resources, missing []string) {
	if err := identify(c.ctx, c); err != nil {
		return nil, []string{err.Error()}
	}
	r, err := c.admin.Resources(c.ctx, c.input.asksXDS())
	if err != nil {
		return nil, []string{"resources: " + err.Error()}
	}
	if missing := envoy.Missing(c.input.boot, c.want, r); len(missing) > 0 {
		return &r, missing
	}
	if err := sh.userCheck(c); err != nil {
		return &r, []string{err.Error()}
	}
	return &r, nil
}

// userCheckTime bounds one run of --verify-command; it is run again until it
// succeeds or the handoff deadline has passed.
const userCheckTime = 30 * time.Second

func (sh *shell) userCheck(c *child) error {
	words := strings.Fields(sh.cfg.VerifyCommand)
	if len(words) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, userCheckTime)
	defer cancel()
	status, err := process.Run(ctx, process.Spec{
		Path: words[0], Args: words[1:], Stdout: os.Stderr, Stderr: os.Stderr, Expendable: true,
		Env: append(os.Environ(), "AETHER_EPOCH="+strconv.Itoa(c.epoch), "AETHER_ADMIN="+c.admin.Address().String()),
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("verify command %s: not done after %s", words[0], userCheckTime)
	case err != nil:
		return fmt.Errorf("verify command: %w", err)
	case status.Code != 0:
		return fmt.Errorf("verify command %s: %s", words[0], status)
	}
	return nil
}
