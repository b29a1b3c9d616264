package hotrestart

import (
	"context"

	"aether.internal/agent/internal/proxy/control"
)

var _ control.Supervisor = (*Supervisor)(nil)

// Reload asks for a hot restart with the newest bootstrap and binary. With
// Wait it returns when that handoff was committed, refused or taken back.
func (s *Supervisor) Reload(ctx context.Context, req control.ReloadRequest) (control.ReloadResult, error) {
	result := make(chan Result, 1)
	waiter, serving := 0, -1
	err := s.ask(ctx, func(sh *shell) {
		if g := sh.state.ours(); g != nil {
			serving = g.Epoch
		}
		if req.Wait {
			sh.nextWait++
			waiter = sh.nextWait
			sh.waiters[waiter] = result
		}
		sh.step(Triggered{By: TriggerReload, Force: req.Force, Waiter: waiter})
	})
	if err != nil {
		return control.ReloadResult{}, err
	}
	if !req.Wait {
		return control.ReloadResult{Outcome: control.Accepted, Epoch: serving}, nil
	}
	select {
	case r := <-result:
		return control.ReloadResult{Outcome: r.Outcome, Epoch: r.Epoch, Error: r.Error, Log: r.Log, Duration: r.Duration}, nil
	case <-ctx.Done():
		_ = s.ask(context.WithoutCancel(ctx), func(sh *shell) { delete(sh.waiters, waiter) })
		return control.ReloadResult{}, context.Cause(ctx)
	}
}
