package hotrestart

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// This file takes an Envoy out of the traffic without ending it, and puts it
// back: proxyctl drain and undrain. It stays out across handoffs.

// outOfService withdraws the marker, which is rule 13's one exception: the epoch
// serves, but somebody doesn't want it to be used.
func (t *turn) outOfService(yes bool) {
	if t.Stage != Running || yes == t.Out {
		return
	}
	t.Out = yes
	g := t.ours()
	if yes {
		t.log(slog.LevelInfo, "out of service, as asked: not ready until undrain", "epoch", t.servingEpoch())
	} else {
		t.log(slog.LevelInfo, "in service again, as asked", "epoch", t.servingEpoch())
	}
	switch {
	case g == nil: // the next commit knows
	case yes:
		t.act(Withdraw{}, Health{g.Epoch, true})
	default:
		t.act(Publish{g.Epoch}, Health{g.Epoch, false})
	}
}

// telling is an epoch being told about its health; ok counts once done is closed.
type telling struct {
	done chan struct{}
	ok   bool
}

// healthTime bounds the telling: an admin may be dark for a moment in a handoff.
const healthTime = 5 * time.Second

// setHealth tells an epoch in the background, one thing after the other.
func (sh *shell) setHealth(a Health) {
	c, before := sh.children[a.Epoch], sh.telling
	now := &telling{done: make(chan struct{})}
	sh.telling = now
	sh.background(func() {
		defer close(now.done)
		if before != nil {
			<-before.done
		}
		if err := tellHealth(c, a.Fails); err != nil {
			sh.log.Warn("the epoch can't be told to fail, or pass, its health checks", "epoch", a.Epoch, "fail", a.Fails, "error", err)
			return
		}
		now.ok = true
	})
}

func tellHealth(c *child, fails bool) error {
	ctx, cancel := context.WithTimeout(c.ctx, healthTime)
	defer cancel()
	tell := c.admin.HealthcheckOK
	if fails {
		tell = c.admin.HealthcheckFail
	}
	for b := (backoff{50 * time.Millisecond, 500 * time.Millisecond}); ; {
		_, err := ownAdmin(ctx, c) // never somebody else's
		if err == nil {
			err = tell(ctx)
		}
		if err == nil || !b.wait(ctx) {
			return err
		}
	}
}

// Drain takes the serving Envoy out of the traffic, or puts it back when out is
// false: the ready marker goes, and Envoy fails its health checks, so that each
// answer asks its client to go elsewhere. Connections that ask for nothing stay.
func (s *Supervisor) Drain(ctx context.Context, out bool) (control.DrainResult, error) {
	r, now := control.DrainResult{}, (*telling)(nil)
	stopping := errors.New("the supervisor is stopping")
	err := s.ask(ctx, func(sh *shell) {
		if sh.state.Stage == Running {
			stopping = nil
			sh.step(OutOfService{out})
			r.Drained, r.Epoch, now = sh.state.Out, sh.state.servingEpoch(), sh.telling
		}
	})
	if err := cmp.Or(err, stopping); err != nil {
		return r, err
	}
	if now == nil || r.Epoch == control.None { // nobody to be told yet
		return r, nil
	}
	select {
	case <-now.done:
		r.Told = now.ok
		return r, nil
	case <-ctx.Done():
		return r, context.Cause(ctx)
	}
}

// History tells the last tries at a handoff, newest first.
func (s *Supervisor) History(ctx context.Context) (control.History, error) {
	h := control.History{Handoffs: []control.TryStatus{}}
	err := s.ask(ctx, func(sh *shell) {
		for _, try := range slices.Backward(sh.state.History) {
			h.Handoffs = append(h.Handoffs, try.status())
		}
	})
	return h, err
}
