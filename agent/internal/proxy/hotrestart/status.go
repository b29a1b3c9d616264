package hotrestart

import (
	"context"
	"os"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// Status tells all that is known, at once.
func (s *Supervisor) Status(ctx context.Context) (control.Status, error) {
	var st control.Status
	err := s.ask(ctx, func(sh *shell) { st = sh.status(time.Now()) })
	return st, err
}

func (sh *shell) status(now time.Time) control.Status {
	st := control.Status{
		Version: sh.cfg.Version, PID: os.Getpid(), BaseID: sh.cfg.BaseID,
		Mode: control.ModeRelay, State: sh.state.name(), Ready: sh.ready, Serving: control.None,
		Concurrency: sh.concurrency, ConfigPath: sh.cfg.ConfigPath, EnvoyPath: sh.cfg.EnvoyPath,
		Pending: sh.state.pending(),
		Drained: sh.state.Out,
		Relay:   !sh.cfg.NoRelay, SegmentRepair: !sh.cfg.NoSegmentRepair, SegmentRepairs: sh.state.Repairs,
	}
	if sh.cfg.NoRelay {
		st.Mode = control.ModePlain
	}
	for i := range sh.state.Gens {
		g := &sh.state.Gens[i]
		st.Epochs = append(st.Epochs, sh.epochStatus(g, now))
		if c := sh.children[g.Epoch]; g.Phase == Serving && !g.Foreign && c != nil {
			st.Serving, st.AdminAddress, st.Mode = g.Epoch, c.admin.Address().String(), g.Input.Mode.String()
		}
	}
	if f := sh.state.LastFailure; f != nil {
		st.LastFailure = &control.FailureStatus{At: f.At, Epoch: f.Epoch, Step: f.Step, Error: f.Text, Log: f.Log}
	}
	st.Upgrades = sh.state.Upgrades
	if u := sh.state.LastUpgrade; u != nil {
		st.LastUpgrade = &control.UpgradeStatus{At: u.At, From: u.From, To: u.To, Error: u.Error}
	}
	if h := sh.state.LastHandoff; h != nil {
		st.LastHandoff = &control.HandoffStatus{At: h.At, From: h.From, To: h.To, Milliseconds: h.steps()}
	}
	return st
}

func (sh *shell) epochStatus(g *Generation, now time.Time) control.EpochStatus {
	e := control.EpochStatus{
		Epoch: g.Epoch, PID: g.Pid, Foreign: g.Foreign, State: g.Phase.String(), StartedAt: g.LaunchedAt,
		AgeSeconds: now.Sub(g.LaunchedAt).Seconds(), TimeLeftSeconds: control.None, Connections: g.Connections,
		ConfigHash: g.Input.Config, BinaryHash: g.Input.Binary,
	}
	if g.Phase == Draining && g.Limit {
		e.TimeLeftSeconds = g.Deadline.Sub(now).Seconds()
	}
	if c := sh.children[g.Epoch]; c != nil && c.input != nil {
		e.EnvoyVersion, e.HotRestartVersion = c.input.binary.Version, c.input.binary.HotRestartVersion
	}
	return e
}

// name is the one word for a state.
func (s *State) name() string {
	switch {
	case s.Stage != Running:
		return control.Stopping
	case s.Leaving != nil:
		return control.Waiting
	case s.succeeded():
		return control.Superseded
	case s.Rival != nil:
		return control.Contested
	case s.Orphaned:
		return control.Orphaned
	case s.ours() == nil && s.foreign() != nil:
		return control.Successor
	case s.ours() == nil:
		return control.Starting
	case s.newcomer() != nil || s.Reading != nil:
		return control.Preparing
	case len(s.Gens) > 1:
		return control.Draining
	}
	return control.Serving
}

// pending is the handoff that has been asked for and waits, and for what.
func (s *State) pending() *control.PendingStatus {
	switch {
	case s.Ready != nil:
		return waits(s.Ready.Want, s.waitsFor())
	case s.Wanted != nil:
		return waits(*s.Wanted, s.waitsFor())
	case s.Reading != nil:
		return waits(s.Reading.Want, s.waitsFor())
	}
	return nil
}

func waits(w Want, what string) *control.PendingStatus {
	p := &control.PendingStatus{Force: w.Force, Since: w.Since, WaitsFor: what}
	for _, t := range w.Triggers {
		p.Triggers = append(p.Triggers, t.String())
	}
	return p
}
