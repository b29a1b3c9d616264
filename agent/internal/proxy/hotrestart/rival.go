package hotrestart

import (
	"fmt"
	"log/slog"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// This file is what an old pod's supervisor does when another one's Envoy takes
// over (rules 9 and 11): contested, superseded, orphaned. Nothing of it needs
// that supervisor's help, which may be killed at any moment.

// Rival is an Envoy of another supervisor at the seat after our newest epoch's.
type Rival struct {
	Epoch      int
	Superseded bool // our own epoch has been told to drain, or has ended
	Relay      bool // our epoch's end is ours: a supervisor answers in its place
}

// Leaving is a stop that goes on serving (rule 9).
type Leaving struct {
	By    string
	Until time.Time
}

// succeeded tells whether another supervisor's epoch serves in our place.
func (s *State) succeeded() bool {
	return s.Rival != nil && s.Rival.Superseded && s.Stage < Closing
}

// whyNot is why nothing is started any more.
func (s *State) whyNot() string {
	if s.Leaving != nil {
		return "the supervisor is stopping: " + s.Leaving.By
	}
	return fmt.Sprintf("epoch %d of another pod serves in place of ours", s.Rival.Epoch)
}

func (t *turn) sighted(e Sighted) {
	switch {
	case t.newcomer() != nil || t.Stage >= Closing: // that seat is our own newcomer's
	case t.Rival == nil && (e.Lives || e.Drained):
		if g := t.head(); g == nil || g.Epoch+1 != e.Epoch || !e.Lives && t.Stage != Running {
			return
		}
		t.contested(e)
		if !e.Lives { // it came, took over and went between two looks
			t.supersede()
			t.rivalGone(e)
			return
		}
	case t.Rival == nil && e.AdminLost && t.ours() != nil && t.Heal == nil:
		t.log(slog.LevelWarn, "another pod's epoch has come and gone", "other", e.Epoch)
		t.adminLost()
	case t.Rival == nil || t.Rival.Epoch != e.Epoch:
	case !e.Lives:
		t.rivalGone(e)
		return
	}
	if r := t.Rival; r != nil && r.Epoch == e.Epoch && e.Lives {
		switch {
		case !r.Superseded:
			r.Relay = e.Relay
		case e.Relay && !r.Relay: // whoever would have ended ours is gone
			r.Relay = true
			t.limit(t.gen(r.Epoch - 1))
		}
		if e.Drained && !r.Superseded {
			t.supersede()
		}
	}
}

// contested: a successor's socket is alive and our Envoy has not been told to
// drain. It is not known to serve ever: we go on, and start nothing.
func (t *turn) contested(e Sighted) {
	t.Rival = &Rival{Epoch: e.Epoch}
	t.putBack()
	t.log(slog.LevelInfo, "contested: another pod's epoch is on its way to take over from ours; nothing is started meanwhile", "epoch", e.Epoch-1, "other", e.Epoch)
	if t.Leaving != nil {
		t.Leaving.Until = t.at.Add(t.Limits.Handoff)
	}
	if !t.StopBy.IsZero() { // nobody else accepts yet, and it needs its parent
		t.StopBy = t.at.Add(t.Limits.Handoff)
		t.act(Lookout{e.Epoch - 1})
	}
}

// followed: to take back a newcomer that is a parent by now would take its child
// along, which may serve.
func (t *turn) followed(epoch int) {
	if g := t.gen(epoch); g != nil && g.uncommitted() {
		if g.LiveAt.IsZero() {
			g.LiveAt = t.at
		}
		t.log(slog.LevelWarn, "another pod's epoch takes over from the newcomer, which is committed as it is", "epoch", epoch, "missing", g.Missing)
		t.commit(g)
	}
}

// supersede: another supervisor's epoch serves now. Ours is released by our own
// count and limit if a relay answers for it, else by the protocol: to end a
// parent under an attached successor that has no relay aborts that one.
func (t *turn) supersede() {
	t.Rival.Superseded = true
	t.act(Withdraw{})
	t.log(slog.LevelInfo, "superseded: another pod's epoch serves in place of ours", "other", t.Rival.Epoch, "relay", t.Rival.Relay)
	t.shelve()
	t.Heal, t.Lost = nil, nil
	mode := ModePlain
	if t.Rival.Relay {
		mode = ModeRelay
	}
	if g := t.head(); g != nil && g.Phase == Serving {
		t.drain(g, mode)
	} else if g != nil { // it had been followed before
		t.limitBy(g, mode)
	}
	t.StopBy = time.Time{}
	if t.Leaving != nil {
		t.stopNow(t.Leaving.By)
	}
}

// shelve tells all callers that nothing will come of it. The wishes stay: should
// the node be ours again, the newest input counts.
func (t *turn) shelve() {
	t.putBack()
	for _, w := range []*Want{t.Wanted, t.readingWant()} {
		if w != nil {
			t.reply(w, Result{Outcome: control.Stopping, Error: t.whyNot()})
		}
	}
}

func (t *turn) readingWant() *Want {
	if t.Reading == nil {
		return nil
	}
	return &t.Reading.Want
}

// endedUnderRival: our Envoy's end is no crash while a successor lives, which
// had it end, or goes on without it (rule 11).
func (t *turn) endedUnderRival(g *Generation) {
	if t.Rival == nil {
		t.Rival = &Rival{Epoch: g.Epoch + 1}
	}
	t.supersede()
}

// rivalGone: the successor's socket has vanished, and its supervisor has not
// started it again.
func (t *turn) rivalGone(e Sighted) {
	r := *t.Rival
	t.Rival = nil
	if !r.Superseded {
		t.log(slog.LevelWarn, "another pod's epoch has gone before it took over; ours goes on", "other", r.Epoch)
		if t.Leaving != nil {
			t.Leaving.Until = t.at.Add(t.Limits.Successor)
		}
		t.StopBy = time.Time{} // the wait for connections begins anew
		if e.AdminLost && t.Stage == Running && t.ours() != nil {
			t.adminLost()
		}
		return
	}
	if t.Stage != Running { // the ordinary stop goes on
		t.lookAfter(r.Epoch - 1)
		return
	}
	t.Orphaned = true
	t.putBack() // it was read when another lived
	t.log(slog.LevelError, "orphaned: the successor of our epoch has gone; the node is ours again", "other", r.Epoch)
	g := t.gen(r.Epoch - 1)
	if g == nil { // that one has ended as well; perhaps its own parent still drains
		g = t.heir()
	}
	if g != nil && !g.Foreign && g.Phase == Draining {
		if g.Input.Mode == ModeRelay { // its end is ours again
			t.limit(g)
		}
		t.Code, t.Reason = ExitNewest, fmt.Sprintf("epoch %d of another pod, our epoch's successor, has gone", r.Epoch)
		t.Lost = &Lost{Epoch: g.Epoch + 1, Input: g.Input}
		t.respawn()
		return
	}
	t.forgetPeer() // who lives is asked anew
}

// limit gives a draining epoch of ours that has none a limit.
func (t *turn) limit(g *Generation) {
	if g != nil && !g.Foreign && g.Phase == Draining && !g.Limit {
		t.limitBy(g, ModeRelay)
	}
}

// lookAfter watches, at a stop, the epoch that is our newest now that another one
// has ended: a new pod's may follow it, and need its answers.
func (t *turn) lookAfter(ended int) {
	if g := t.head(); t.Stage == Stopping && t.Rival == nil && g != nil && g.Epoch < ended {
		t.act(Lookout{g.Epoch})
	}
}

// takeNode looks who lives, and serves again, once nothing of ours is left.
func (t *turn) takeNode() {
	if t.Orphaned && t.own() == 0 && t.Code == 0 && t.Rival == nil && t.Wanted == nil && t.Reading == nil && t.Ready == nil {
		t.Wanted = &Want{Triggers: []Trigger{TriggerRespawn}, Since: t.at}
		t.act(Measure{"restart_triggers", 1, TriggerRespawn.String()})
	}
}

// atStake is the epoch of ours that an event may be the end of.
func (s *State) atStake(is any, at time.Time) (epoch int, ok bool) {
	g, by := s.head(), s.StopBy
	if n := s.newcomer(); n != nil && n.uncommitted() {
		g, by = n, n.Deadline
	} else if n != nil {
		return 0, false
	}
	if g == nil || s.Rival != nil || s.Stage >= Closing {
		return 0, false
	}
	switch is.(type) {
	case Stop, Drained, Prepared:
		return g.Epoch, true
	case Tick:
		return g.Epoch, !by.IsZero() && !at.Before(by)
	}
	return 0, false
}

// stay turns a stop into a wait for a successor: one is on its way, or may come
// (rule 9). A second one doesn't wait.
func (t *turn) stay(by string) bool {
	g := t.ours()
	if g == nil || t.Leaving != nil {
		return false
	}
	wait, why := t.Limits.Successor, "a successor may come"
	if t.Rival != nil {
		wait, why = t.Limits.Handoff, "a successor is on its way"
	}
	if wait <= 0 {
		return false
	}
	t.Leaving = &Leaving{By: by, Until: t.at.Add(wait)}
	t.log(slog.LevelInfo, "asked to stop; our epoch serves on for a while", "by", by, "why", why, "at most", wait.String())
	t.cancel("the supervisor is stopping")
	return true
}

// leave ends that wait.
func (t *turn) leave() {
	if t.Leaving != nil && t.Stage == Running && !t.at.Before(t.Leaving.Until) {
		t.log(slog.LevelWarn, "no successor has taken over; our epoch is stopped")
		t.stopNow(t.Leaving.By)
	}
}
