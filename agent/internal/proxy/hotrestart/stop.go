package hotrestart

import (
	"cmp"
	"log/slog"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// stop is rule 8. The first one drains, a second skips the wait.
func (t *turn) stop(e Stop) {
	switch t.Stage {
	case Running:
		if !t.stay(e.By) {
			t.stopNow(e.By)
		}
	case Stopping:
		if t.Rival != nil && !t.Rival.Relay {
			t.log(slog.LevelWarn, "stop: our epoch is the parent of another pod's and is left to it; without a relay its end would be that one's as well", "epoch", t.Rival.Epoch)
			return
		}
		t.Skip = true
		t.log(slog.LevelWarn, "stopping without waiting", "by", e.By)
		if n := t.newcomer(); n != nil {
			t.act(TakeBack{Epoch: n.Epoch, Hasty: true})
			return
		}
		t.close()
	}
}

// stopNow begins the drained stop.
func (t *turn) stopNow(by string) {
	t.Stage, t.Code, t.Reason, t.Leaving = Stopping, 0, by, nil
	t.act(Withdraw{})
	t.log(slog.LevelInfo, "stopping", "by", by)
	t.upgradeOver(UpgradeOver{Error: "the supervisor is stopping"})
	t.cancel("the supervisor is stopping")
}

// cancel drops every wish; an uncommitted newcomer is removed first of all.
func (t *turn) cancel(why string) {
	for _, w := range t.wishes() {
		t.reply(w, Result{Outcome: control.Stopping, Error: why})
	}
	if t.Ready != nil {
		t.act(Discard{t.Ready.Input})
	}
	t.Wanted, t.Reading, t.Ready = nil, nil, nil
	if n := t.newcomer(); n != nil && n.uncommitted() {
		n.Phase = Removing
		t.act(TakeBack{Epoch: n.Epoch, Hasty: t.Skip})
		t.log(slog.LevelInfo, "newcomer is removed", "epoch", n.Epoch, "why", why)
	}
}

func (t *turn) wishes() []*Want {
	var ws []*Want
	if t.Wanted != nil {
		ws = append(ws, t.Wanted)
	}
	if t.Reading != nil {
		w := t.Reading.Want
		ws = append(ws, &w)
	}
	if t.Ready != nil {
		w := t.Ready.Want
		ws = append(ws, &w)
	}
	if n := t.newcomer(); n != nil {
		ws = append(ws, &n.Want)
	}
	return ws
}

// drainAll waits for the connections of all generations, once the newcomer is
// gone: up to the drain time, or what is left of an older epoch's limit.
func (t *turn) drainAll() {
	if t.newcomer() != nil {
		return
	}
	t.forgetPeer()
	if len(t.Gens) == 0 || t.Skip {
		t.close()
		return
	}
	if t.succeeded() {
		return // each ends by itself: drained by its successor, counted and limited by us
	}
	if !t.StopBy.IsZero() {
		return
	}
	t.StopBy = t.at.Add(t.Limits.Drain)
	for i := range t.Gens {
		if g := &t.Gens[i]; g.Phase == Draining && g.Deadline.After(t.StopBy) {
			t.StopBy = g.Deadline
		}
	}
	t.act(DrainAll{t.StopBy})
	t.log(slog.LevelInfo, "draining", "until", t.StopBy.Sub(t.at).Round(time.Millisecond).String())
}

func (t *turn) drained() {
	if t.Rival != nil && !t.Rival.Superseded {
		return // a successor is on its way: it may need its parent, and nobody else accepts yet
	}
	if t.Stage == Stopping && !t.StopBy.IsZero() {
		t.log(slog.LevelInfo, "drained: no connection is left")
		t.close()
	}
}

// close ends everything.
func (t *turn) close() {
	if t.Stage < Closing {
		t.Stage = Closing
		t.act(Withdraw{})
		t.forgetPeer()
		for i := range t.Gens {
			g := &t.Gens[i]
			g.Phase, g.Deadline, g.EndedBy = Ending, t.at.Add(t.Limits.Kill), cmp.Or(g.EndedBy, "stop")
			t.act(Signal{g.Epoch, syscall.SIGTERM})
		}
	}
	if len(t.Gens) == 0 {
		t.Stage = Done
	}
}

func (t *turn) answered(epoch int) {
	g := t.gen(epoch)
	if g == nil || g.Answered || g.Foreign {
		return
	}
	g.Answered = true
	if g.Reopen {
		g.Reopen = false
		t.act(Signal{epoch, syscall.SIGUSR1})
	}
}

// reopen forwards SIGUSR1 to every epoch whose admin has answered once: an
// Envoy that has just been started dies of it (fact 22). A draining epoch
// still writes its log.
func (t *turn) reopen() {
	for i := range t.Gens {
		g := &t.Gens[i]
		if g.Answered {
			t.act(Signal{g.Epoch, syscall.SIGUSR1})
		} else if !g.Foreign {
			if !g.Reopen {
				t.log(slog.LevelInfo, "log reopen waits for the epoch's first answer", "epoch", g.Epoch, "phase", g.Phase.String())
			}
			g.Reopen = true
		}
	}
}
