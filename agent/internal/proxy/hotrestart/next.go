package hotrestart

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// next decides; it never acts. Every pair of state and event has an answer; an
// event about something that is no longer there changes nothing.
func next(s State, ev Event) (State, []Action) {
	t := &turn{State: s.clone(), at: ev.At}
	switch e := ev.Is.(type) {
	case Triggered:
		t.triggered(e)
	case Prepared:
		t.prepared(e)
	case Launched:
		t.launched(e)
	case WentLive:
		t.wentLive(e.Epoch)
	case Verified:
		t.verified(e.Epoch)
	case Unverified:
		t.unverified(e)
	case Answered:
		t.answered(e.Epoch)
	case Exited:
		t.exited(e)
	case Removed:
		t.removed(e)
	case Counted:
		t.counted(e)
	case Drained:
		t.drained()
	case Stop:
		t.stop(e)
	case Reopen:
		t.reopen()
	case Tick:
	}
	t.expire()
	t.advance()
	return t.State, t.do
}

// turn is one call of next.
type turn struct {
	State
	at time.Time
	do []Action
}

func (t *turn) act(a ...Action) { t.do = append(t.do, a...) }

func (t *turn) log(level slog.Level, text string, attrs ...any) {
	t.act(Log{level, text, attrs})
}

func (t *turn) reply(w *Want, r Result) {
	if len(w.Waiters) > 0 {
		r.Duration = t.at.Sub(w.Since)
		t.act(Reply{w.Waiters, r})
		w.Waiters = nil
	}
}

// advance starts whatever can start now.
func (t *turn) advance() {
	switch t.Stage {
	case Running:
		t.read()
		t.launch()
		t.endWithoutHope()
	case Stopping:
		t.drainAll()
	case Closing:
		if len(t.Gens) == 0 {
			t.Stage = Done
		}
	}
}

// triggered collapses wishes: the newest input wins, because it is read only
// when it can be used (rule 4).
func (t *turn) triggered(e Triggered) {
	w := Want{Triggers: []Trigger{e.By}, Force: e.Force, Since: t.at}
	if e.Waiter != 0 {
		w.Waiters = []int{e.Waiter}
	}
	if t.Stage != Running {
		t.reply(&w, Result{Outcome: "stopping", Error: "the supervisor is stopping: " + t.Reason})
		return
	}
	t.act(Measure{"restart_triggers", 1, e.By.String()})
	if t.Wanted == nil {
		t.Wanted = &Want{}
	}
	t.Wanted.merge(w)
}

// read starts to read the newest input. While a newcomer is on its way the
// wish waits, so that bursts collapse; a newcomer that takes long, and force,
// don't make it wait.
func (t *turn) read() {
	if t.Wanted == nil || t.Reading != nil {
		return
	}
	if n := t.newcomer(); n != nil && n.uncommitted() && !t.Wanted.Force && !t.old(n) {
		return
	}
	t.NextID++
	t.Reading = &Reading{ID: t.NextID, Want: *t.Wanted}
	t.Wanted = nil
	t.act(Read{ID: t.NextID, Want: t.Reading.Want, First: !t.Served})
}

func (t *turn) old(g *Generation) bool { return !t.at.Before(g.LaunchedAt.Add(t.Limits.GiveWay)) }

func (t *turn) prepared(e Prepared) {
	if t.Reading == nil || t.Reading.ID != e.ID {
		if e.Failed == nil {
			t.act(Discard{e.Input})
		}
		return
	}
	want := t.Reading.Want
	t.Reading = nil
	switch {
	case e.Failed != nil:
		t.refuse(want, *e.Failed)
	case t.unchanged(&want, e.Input):
		t.act(Discard{e.Input})
	default:
		if t.Ready != nil { // it still waited for a free generation
			older := t.Ready.Want
			older.merge(want)
			want = older
			t.act(Discard{t.Ready.Input})
		}
		t.Ready = &Ready{Want: want, Input: e.Input, Since: t.at}
	}
}

// refuse keeps what serves and tells why.
func (t *turn) refuse(w Want, r Refusal) {
	epoch := t.nextEpoch()
	t.LastFailure = &Failure{At: t.at, Epoch: epoch, Step: r.Step, Text: r.Text, Log: r.Log}
	t.act(Measure{"config_validation_failures", 1, r.Step})
	t.log(slog.LevelError, "restart refused", "epoch", epoch, "step", r.Step, "error", r.Text)
	t.reply(&w, Result{Outcome: "refused", Epoch: epoch, Error: r.Step + ": " + r.Text, Log: r.Log})
	if !t.Served && len(t.Gens) == 0 && t.Code == 0 {
		t.Code, t.Reason = cmp.Or(r.Code, ExitUnexpected), r.Step+": "+r.Text
	}
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
	t.reply(w, Result{Outcome: "unchanged", Epoch: s.Epoch})
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
	if t.Ready == nil {
		return
	}
	if n := t.newcomer(); n != nil {
		if n.uncommitted() && t.old(n) {
			n.Superseded = true
			t.takeBack(n, "superseded", "a newer input is ready")
		}
		return
	}
	if g := t.inTheWay(); g != nil {
		t.makeRoom(g)
		return
	}
	r := *t.Ready
	t.Ready = nil
	parent, epoch := -1, t.nextEpoch()
	if s := t.serving(); s != nil {
		parent = s.Epoch
	}
	g := Generation{
		Epoch: epoch, Phase: Starting, Input: r.Input, Want: r.Want, Connections: -1,
		Deadline: t.at.Add(t.Limits.Handoff), LaunchedAt: t.at, PreparedIn: t.at.Sub(r.Want.Since),
	}
	t.Gens = append(t.Gens, g)
	t.act(Launch{Epoch: epoch, Parent: parent, Input: r.Input, Deadline: g.Deadline})
}

// inTheWay is the oldest generation that must end before the ready input can
// be launched, nil when none must.
func (t *turn) inTheWay() *Generation {
	epoch := t.nextEpoch()
	alone := t.Ready.Input.Mode != ModeRelay
	if s := t.serving(); s != nil {
		alone = alone || s.Input.Mode != ModeRelay
	}
	return t.where(func(g *Generation) bool {
		if g.Phase == Serving {
			return false
		}
		// Envoy's names tell epochs apart by their number mod 3 (fact 7); with UDP
		// or in plain mode a parent's parent would be cut (section 2).
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

func (t *turn) launched(e Launched) {
	g := t.gen(e.Epoch)
	if g == nil {
		return
	}
	if e.Failed != nil {
		if g.uncommitted() {
			t.takeBackFor(g, e.Failed.Step, e.Failed.Text, e.Failed.Code)
		}
		return
	}
	g.Pid = e.Pid
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
	from := -1
	if g.Input.Mode != ModePlain {
		t.act(Commit{g.Epoch})
	}
	if old != nil {
		from = old.Epoch
		t.drain(old, g.Input.Mode)
	}
	t.act(Publish{g.Epoch})
	total := t.at.Sub(g.Want.Since)
	t.LastHandoff = &Handoff{
		At: t.at, From: from, To: g.Epoch, Triggers: g.Want.Triggers, Forced: g.Missing,
		Prepare: g.PreparedIn, Live: g.LiveAt.Sub(g.LaunchedAt), Verify: t.at.Sub(g.LiveAt), Total: total,
	}
	t.act(Measure{"handoff.duration", total.Seconds(), ""}, Measure{"epoch", float64(g.Epoch), ""})
	t.log(slog.LevelInfo, "epoch serves", "epoch", g.Epoch, "parent", from, "pid", g.Pid, "after", total.Round(time.Millisecond).String())
	t.reply(&g.Want, Result{Outcome: "committed", Epoch: g.Epoch})
}

// drain begins an old epoch's release.
func (t *turn) drain(g *Generation, successor Mode) {
	g.Phase, g.DrainingFrom, g.Zeros = Draining, t.at, 0
	if successor == ModeRelay {
		g.Deadline, g.Limit = t.at.Add(t.Limits.Parent), true
	} else { // no deadline of ours (rule 6)
		g.Deadline, g.Limit = time.Time{}, false
	}
	t.act(Count{g.Epoch})
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
	want, superseded := g.Want, g.Superseded
	t.drop(e.Epoch)
	r := Result{Outcome: "failed", Epoch: e.Epoch, Log: e.Log}
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
	if t.serving() != nil {
		t.Code, t.Reason = 0, "" // nothing was lost
		t.log(slog.LevelInfo, "the serving epoch goes on", "epoch", t.serving().Epoch)
	}
}

// endWithoutHope ends the supervisor when nothing serves and nothing is on its
// way to.
func (t *turn) endWithoutHope() {
	if t.serving() != nil || t.newcomer() != nil || t.Ready != nil || t.Reading != nil || t.Wanted != nil {
		return
	}
	if t.Code == 0 {
		return // not started yet
	}
	t.close()
}
