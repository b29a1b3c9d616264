package hotrestart

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// This file is the second step of a handoff: from the fork to the commit, or
// to a newcomer that is taken back.

func (t *turn) launched(e Launched) {
	g := t.gen(e.Epoch)
	if g == nil {
		return
	}
	if e.Failed != nil {
		if g.uncommitted() && e.Failed.Again && t.mayLookAgain(g) {
			t.lookAgain(g, *e.Failed)
		} else if g.uncommitted() {
			t.takeBackFor(g, e.Failed.Step, e.Failed.Text, e.Failed.Code)
		}
		return
	}
	g.Pid, g.ForkedAt = e.Pid, t.at
	if g.uncommitted() {
		t.act(Watch{g.Epoch})
		t.log(slog.LevelInfo, "newcomer started", "epoch", g.Epoch, "pid", g.Pid, "mode", g.Input.Mode.String())
	}
}

func (t *turn) wentLive(epoch int) {
	g := t.gen(epoch)
	if g == nil || g.Phase != Starting {
		return
	}
	g.Phase, g.LiveAt = Live, t.at
	switch g.Input.Mode {
	case ModePlain: // Envoy has told its parent to drain already
		if t.serving() != nil {
			t.commit(g)
		}
	case ModeUDP:
		// The commit must come before Envoy's own timer, which runs from LIVE:
		// a parent ended while it still has its listeners resets everybody.
		if by := t.at.Add(t.Limits.Parent / 2); t.serving() != nil && by.Before(g.Deadline) {
			g.Deadline = by
		}
	}
}

func (t *turn) verified(epoch int) {
	if g := t.gen(epoch); g != nil && g.uncommitted() {
		g.Missing = nil
		if g.LiveAt.IsZero() {
			g.LiveAt = t.at
		}
		t.commit(g)
	}
}

func (t *turn) unverified(e Unverified) {
	g := t.gen(e.Epoch)
	if g == nil {
		return
	}
	news := strings.Join(g.Missing, "; ") != strings.Join(e.Missing, "; ")
	g.Missing = e.Missing
	if g.Phase == Serving && news { // plain: nothing to take back any more
		t.log(slog.LevelWarn, "the new epoch serves less than it should", "epoch", g.Epoch, "missing", e.Missing)
	}
	if g.Phase == Starting && news { // only of one that takes more than a moment
		t.log(slog.LevelInfo, "waiting for the newcomer to be LIVE", "epoch", g.Epoch, "for", t.at.Sub(g.LaunchedAt).Round(time.Millisecond).String(), "missing", e.Missing)
	}
	if g.Phase != Live {
		return
	}
	if g.Want.Force {
		t.log(slog.LevelWarn, "force: committed although something is missing", "epoch", g.Epoch, "missing", e.Missing)
		t.commit(g)
	} else if news {
		t.log(slog.LevelInfo, "waiting for the newcomer to be complete", "epoch", g.Epoch, "missing", e.Missing)
	}
}

// commit makes the newcomer the serving epoch; its parent drains.
func (t *turn) commit(g *Generation) {
	old := t.serving()
	g.Phase, g.CommittedAt, g.Deadline = Serving, t.at, time.Time{}
	t.Served, t.Code, t.Reason = true, 0, ""
	t.Lost, t.Heal = nil, nil
	t.Rival, t.Orphaned = nil, false
	from := -1
	if g.Input.Mode != ModePlain {
		t.act(Commit{g.Epoch})
	}
	if old != nil {
		from = old.Epoch
		t.drain(old, g.Input.Mode)
	} else if g.Input.Mode == ModeRelay {
		t.limit(t.gen(g.Epoch - 1)) // whose first child may have left its end to it
	}
	if t.Out {
		t.act(PublishUnready{g.Epoch}, Health{g.Epoch, true}, Guard{g.Epoch}, Lookout{g.Epoch})
	} else {
		t.act(Publish{g.Epoch}, Guard{g.Epoch}, Lookout{g.Epoch})
	}
	h := g.handoff(from, control.Committed)
	h.Forced = g.Missing
	t.LastHandoff = t.conclude(h)
	t.log(slog.LevelInfo, "epoch serves", "epoch", g.Epoch, "parent", from, "pid", g.Pid, "after", t.at.Sub(h.Since).Round(time.Millisecond).String())
	t.reply(&g.Want, Result{Outcome: control.Committed, Epoch: g.Epoch})
}

// drain begins an old epoch's release.
func (t *turn) drain(g *Generation, successor Mode) {
	g.Phase, g.DrainingFrom, g.Zeros = Draining, t.at, 0
	if g.Foreign { // its own supervisor counts it, and ends it (rule 11)
		return
	}
	t.limitBy(g, successor)
	t.act(Count{g.Epoch})
}

func (t *turn) limitBy(g *Generation, successor Mode) {
	if successor == ModeRelay {
		g.Deadline, g.Limit = t.at.Add(t.Limits.Parent), true
	} else { // no deadline of ours (rule 6)
		g.Deadline, g.Limit = time.Time{}, false
	}
}

// takeBack removes a newcomer without harming anybody (rule 7).
func (t *turn) takeBack(g *Generation, step, why string) { t.takeBackFor(g, step, why, ExitFirstEpoch) }

func (t *turn) takeBackFor(g *Generation, step, why string, code int) {
	g.Phase = Removing
	t.LastFailure = &Failure{At: t.at, Epoch: g.Epoch, Step: step, Text: why}
	if t.Code == 0 {
		t.Code, t.Reason = cmp.Or(code, ExitUnexpected), fmt.Sprintf("epoch %d: %s: %s", g.Epoch, step, why)
	}
	t.act(Measure{"rollbacks", 1, step}, TakeBack{Epoch: g.Epoch, Hasty: t.Skip})
	t.log(slog.LevelError, "newcomer is taken back", "epoch", g.Epoch, "step", step, "error", why)
}

func (t *turn) removed(e Removed) {
	g := t.gen(e.Epoch)
	if g == nil {
		return
	}
	if g.Pid != 0 && !g.Reaped {
		t.act(Measure{"child_exits", 1, "taken_back"})
	}
	if e.Repaired {
		t.Repairs++
		t.act(Measure{"segment_repairs", 1, ""})
	}
	want, superseded := g.Want, g.Superseded
	if g.Again && t.Stage == Running {
		t.drop(e.Epoch)
		t.beaten(e.Epoch, want)
		return
	}
	t.conclude(t.undone(g))
	t.drop(e.Epoch)
	r := Result{Outcome: control.Failed, Epoch: e.Epoch, Log: e.Log}
	if f := t.LastFailure; f != nil && f.Epoch == e.Epoch {
		f := *f
		f.Log = e.Log
		t.LastFailure = &f
		r.Error = f.Step + ": " + f.Text
	}
	if superseded && t.Ready != nil {
		t.Ready.Want.merge(Want{Waiters: want.Waiters})
	} else {
		t.reply(&want, r)
	}
	if !superseded || t.Ready == nil {
		t.giveUpPeer()
	}
	if s := t.serving(); s != nil {
		t.Code, t.Reason = 0, "" // nothing was lost
		t.log(slog.LevelInfo, "the serving epoch goes on", "epoch", s.Epoch)
		if t.Stage == Running && !s.Foreign && (e.TookAdmin || t.Heal != nil) {
			t.adminLost()
		}
		return
	}
	if superseded && t.Ready != nil {
		return // the newer input is launched instead, at the same number
	}
	t.respawn()
}
