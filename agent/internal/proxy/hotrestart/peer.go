package hotrestart

import (
	"log/slog"

	"aether.internal/agent/internal/proxy/control"
)

// This file is what a new pod's supervisor does with another one's epoch that
// serves when it starts: it is the parent of our first one. We ask it what a
// newcomer asks its parent, and tell it to drain at our commit; when it ends is
// its own supervisor's business.

// awaits records what a read waits for.
func (t *turn) awaits(e Awaits) {
	if t.Reading == nil || t.Reading.ID != e.ID || t.Reading.Waits == e.What {
		return
	}
	t.Reading.Waits = e.What
	if e.What != "" {
		t.log(slog.LevelInfo, "waiting for another supervisor", "until", e.What)
	}
}

// adopt makes the epoch that was found the one to take over from.
func (t *turn) adopt(e Prepared) {
	if e.Peer == nil || e.Failed != nil || t.foreign() != nil {
		return
	}
	t.Gens = append(t.Gens, Generation{
		Epoch: e.Peer.Epoch, Phase: Serving, Foreign: true, Input: Input{ID: none, Mode: e.Input.Mode}, LaunchedAt: t.at, Connections: unknown,
	})
	t.act(Measure{"predecessor_detected", 1, ""}, Adopt{e.Peer.Epoch, e.Input})
	t.log(slog.LevelInfo, "another pod's epoch serves; ours will take over from it", "other", e.Peer.Epoch, "pod", e.Peer.Pod)
}

// none is no input.
const none = -1

// peerEnded: a newcomer that has a relay goes on. One that is yet to be launched
// must know anew who lives.
func (t *turn) peerEnded(g *Generation, e Exited) {
	served := g.Phase == Serving
	t.log(slog.LevelInfo, "the other pod's epoch has ended", "other", g.Epoch)
	t.forgetPeer()
	if !served || t.Stage != Running {
		return
	}
	switch n := t.newcomer(); {
	case n == nil:
		t.putBack()
	case !n.uncommitted():
	case n.Input.Mode == ModePlain: // as in crashed
		t.takeBack(n, "start", "the other pod's epoch has ended ("+e.Status+"), and without a relay nobody answers in its place")
		t.act(TakeBack{Epoch: n.Epoch, Hasty: true})
	default:
		t.log(slog.LevelWarn, "the newcomer goes on without its parent", "epoch", n.Epoch)
	}
}

// giveUpPeer lets go of an epoch that still serves: nothing of ours is on its
// way any more. Whoever started us tries again; the node is served.
func (t *turn) giveUpPeer() {
	if g := t.foreign(); g != nil && g.Phase == Serving && t.newcomer() == nil {
		t.forgetPeer()
		t.putBack()
	}
}

func (t *turn) forgetPeer() {
	if g := t.foreign(); g != nil {
		epoch := g.Epoch
		t.drop(epoch)
		t.act(Forget{epoch})
	}
}

// mayLookAgain: nothing of ours depends on this try, and it isn't too old.
func (t *turn) mayLookAgain(g *Generation) bool {
	return t.ours() == nil && t.at.Before(g.Want.Since.Add(t.Limits.Handoff))
}

// lookAgain takes back a newcomer that was not even started: somebody else sits
// where it would, or whom it follows has gone.
func (t *turn) lookAgain(g *Generation, r Refusal) {
	g.Phase, g.Again = Removing, true
	t.act(TakeBack{Epoch: g.Epoch, Hasty: true})
	t.log(slog.LevelInfo, "another supervisor was faster; looking again who lives", "epoch", g.Epoch, "step", r.Step, "why", r.Text)
}

// beaten: the wish remains. One that would have taken the node back watches
// whoever did.
func (t *turn) beaten(epoch int, w Want) {
	t.forgetPeer()
	if t.Lost != nil {
		t.Lost, t.Code, t.Reason = nil, 0, ""
		t.Rival = &Rival{Epoch: epoch, Superseded: true}
		t.reply(&w, Result{Outcome: control.Stopping, Error: t.whyNot()})
		if g := t.heir(); g != nil {
			t.Rival.Epoch = g.Epoch + 1
			t.act(Lookout{g.Epoch}) // the newest one's ended with it, and watched another seat
		} else {
			t.Rival, t.Orphaned = nil, true
		}
		return
	}
	t.putBack()
	if t.Wanted == nil {
		t.Wanted = &Want{}
	}
	t.Wanted.merge(w)
}
