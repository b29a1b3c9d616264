package hotrestart

import (
	"cmp"
	"log/slog"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/envoy"
)

// This file is the first step of a handoff: from a wish to the fork.

// triggered collapses wishes: the newest input wins, because it is read only
// when it can be used (rule 4).
func (t *turn) triggered(e Triggered) {
	w := Want{Triggers: []Trigger{e.By}, Force: e.Force, Since: t.at}
	if e.Waiter != 0 {
		w.Waiters = []int{e.Waiter}
	}
	if t.Stage != Running {
		t.reply(&w, Result{Outcome: control.Stopping, Error: "the supervisor is stopping: " + t.Reason})
		return
	}
	t.act(Measure{"restart_triggers", 1, e.By.String()})
	if t.Leaving != nil || t.succeeded() {
		t.reply(&w, Result{Outcome: control.Stopping, Error: t.whyNot()})
		if t.Leaving != nil {
			return
		}
	}
	if t.Wanted == nil {
		t.Wanted = &Want{}
	}
	t.Wanted.merge(w)
}

// read starts to read the newest input. While a newcomer is on its way the
// wish waits, so that bursts collapse; a newcomer that takes long, and force,
// don't make it wait.
func (t *turn) read() {
	if t.Wanted == nil || t.Reading != nil || t.Rival != nil || t.Leaving != nil || t.holds(t.Wanted) {
		return
	}
	if t.heir() == nil && t.newcomer() == nil && t.own() > 0 {
		return // what is left of us must not be taken for another supervisor's
	}
	if n := t.newcomer(); n != nil && n.uncommitted() && !t.Wanted.Force && !t.old(n) {
		return
	}
	t.NextID++
	t.Reading = &Reading{ID: t.NextID, Want: *t.Wanted, At: t.at, Survey: t.heir() == nil && t.newcomer() == nil}
	t.Wanted = nil
	t.act(Read{ID: t.NextID, Want: t.Reading.Want, First: t.ours() == nil, Survey: t.Reading.Survey})
}

func (t *turn) old(g *Generation) bool {
	at := t.givesWay(g)
	return !at.IsZero() && !t.at.Before(at)
}

func (t *turn) prepared(e Prepared) {
	if t.Reading == nil || t.Reading.ID != e.ID {
		if e.Failed == nil {
			t.act(Discard{e.Input})
		}
		return
	}
	want, times, surveyed := t.Reading.Want, Prep{ReadAt: t.Reading.At, ReadyAt: t.at}, t.Reading.Survey
	t.Reading = nil
	if surveyed = surveyed && t.own() == 0 && t.Rival == nil; surveyed {
		t.adopt(e)
	}
	switch {
	case e.Failed != nil:
		t.refuse(want, times, *e.Failed)
	case t.unchanged(&want, e.Input):
		t.act(Discard{e.Input})
	default:
		if t.Ready != nil { // it still waited for a free generation
			older := t.Ready.Want
			older.merge(want)
			want = older
			t.act(Discard{t.Ready.Input})
		}
		t.Ready = &Ready{Want: want, Input: e.Input, Surveyed: surveyed, Prep: times}
	}
}

// refuse keeps what serves and tells why.
func (t *turn) refuse(w Want, times Prep, r Refusal) {
	epoch := t.nextEpoch()
	t.LastFailure = &Failure{At: t.at, Epoch: epoch, Step: r.Step, Text: r.Text, Log: r.Log}
	t.act(Measure{"config_validation_failures", 1, r.Step})
	t.conclude(Handoff{
		From: t.parentOf(), To: epoch, Triggers: w.Triggers, Outcome: control.Refused, Step: r.Step, Text: r.Text,
		Since: w.Since, Prep: times, FailedAt: t.at,
	})
	t.reply(&w, Result{Outcome: control.Refused, Epoch: epoch, Error: r.Step + ": " + r.Text, Log: r.Log})
	t.giveUpPeer()
	if t.heir() == nil && len(t.Gens) == 0 && t.Code == 0 {
		t.Code, t.Reason = cmp.Or(r.Code, ExitUnexpected), r.Step+": "+r.Text
		if t.Wanted == nil {
			return // the end, whose reason is told by whoever ran us
		}
	}
	t.log(slog.LevelError, "restart refused", "epoch", epoch, "step", r.Step, "error", r.Text)
}

// unchanged settles a wish whose input is there already.
func (t *turn) unchanged(w *Want, in Input) bool {
	if n := t.newcomer(); n != nil && n.uncommitted() {
		if !n.Input.same(in) {
			return false
		}
		n.Want.merge(*w) // it gets what the newcomer gets
		return true
	}
	s := t.serving()
	if s == nil || t.Ready != nil || !w.watchOnly() || !s.Input.same(in) {
		return false
	}
	t.log(slog.LevelInfo, "no restart: the content is what is being served", "epoch", s.Epoch)
	t.reply(w, Result{Outcome: control.Unchanged, Epoch: s.Epoch})
	return true
}

// nextEpoch is the number a newcomer would get. A failed try uses up none
// (rule 10): it follows from the living.
func (t *turn) nextEpoch() int {
	epoch := 0
	for i := range t.Gens {
		if g := &t.Gens[i]; g.Phase != Removing && !g.uncommitted() {
			epoch = max(epoch, g.Epoch+1)
		}
	}
	return epoch
}

// launch forks the ready input, as soon as a generation is free for it.
func (t *turn) launch() {
	if t.Ready == nil || t.Rival != nil || t.Leaving != nil {
		return
	}
	if n := t.newcomer(); n != nil {
		if n.uncommitted() && t.old(n) {
			n.Superseded = true
			t.takeBack(n, "superseded", "a newer input is ready")
		}
		return
	}
	if t.heir() == nil && !t.Ready.Surveyed { // whoever it was prepared to follow is dead
		t.putBack()
		t.read()
		return
	}
	if s := t.serving(); s != nil && s.Asking {
		return // one that hangs is about to be ended, and would keep a newcomer waiting
	}
	if g := t.inTheWay(); g != nil {
		t.makeRoom(g)
		return
	}
	r := *t.Ready
	t.Ready = nil
	parent, epoch := t.parentOf(), t.nextEpoch()
	g := Generation{
		Epoch: epoch, Phase: Starting, Input: r.Input, Want: r.Want, Connections: -1,
		Deadline: t.at.Add(t.Limits.Handoff), LaunchedAt: t.at, Prep: r.Prep,
	}
	if t.Lost != nil {
		g.Respawns = t.Lost.Tries
	}
	t.Gens = append(t.Gens, g)
	t.act(Launch{Epoch: epoch, Parent: parent, Input: r.Input, Deadline: g.Deadline})
}

// inTheWay is the oldest generation that must end before the ready input can
// be launched, nil when none must.
func (t *turn) inTheWay() *Generation {
	epoch := t.nextEpoch()
	alone := t.Ready.Input.Mode != ModeRelay
	heir := t.heir()
	if heir != nil {
		alone = alone || heir.Input.Mode != ModeRelay
	}
	return t.where(func(g *Generation) bool {
		if g == heir {
			return false
		}
		// Envoy's names tell epochs apart by their number mod 3 (fact 7); with UDP
		// or in plain mode a parent's parent would be cut (docs/concepts.md).
		return alone || g.Epoch%envoy.Seats == epoch%envoy.Seats
	})
}

// makeRoom ends the oldest generation when force says so (rule 4). Where
// Envoy's own timer is the limit even force waits for it.
func (t *turn) makeRoom(g *Generation) {
	oldestOfThree := g.Epoch%envoy.Seats == t.nextEpoch()%envoy.Seats
	if t.Ready.Want.Force && oldestOfThree && g.Phase == Draining && g.Limit {
		t.log(slog.LevelWarn, "force: the oldest epoch is ended and its streams are cut", "epoch", g.Epoch, "connections", g.Connections)
		t.end(g, "forced")
	}
}
