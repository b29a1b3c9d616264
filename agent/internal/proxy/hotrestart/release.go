package hotrestart

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"
)

// counted ends a draining epoch that is idle: no connection, twice in a row.
func (t *turn) counted(e Counted) {
	g := t.gen(e.Epoch)
	if g == nil || g.Foreign {
		return
	}
	g.Connections = e.Connections
	if e.Connections == 0 {
		g.Zeros++
	} else {
		g.Zeros = 0
	}
	if t.mayEnd(g) && g.Limit && g.Zeros >= 2 {
		t.end(g, "idle")
	}
}

// end is the only way an old epoch is told to go. Its successor's relay
// answers for it from then on (rule 6), and its own relay keeps its terminate
// from its parent (fact 15).
func (t *turn) end(g *Generation, why string) {
	if g.Phase == Ending {
		return
	}
	g.Phase, g.Deadline, g.EndedBy = Ending, t.at.Add(t.Limits.Kill), why
	t.act(Measure{"parents_ended", 1, why}, Signal{g.Epoch, syscall.SIGTERM})
	t.log(slog.LevelInfo, "old epoch is ended", "epoch", g.Epoch, "why", why, "connections", g.Connections,
		"drained", t.at.Sub(g.DrainingFrom).Round(time.Millisecond).String())
}

// expire acts on every deadline that has passed.
func (t *turn) expire() {
	for i := range t.Gens {
		g := &t.Gens[i]
		if g.Deadline.IsZero() || t.at.Before(g.Deadline) || !t.counts(g) {
			continue
		}
		switch g.Phase {
		case Starting, Live:
			t.takeBack(g, "handoff deadline", t.notInTime(g))
		case Draining:
			t.end(g, "limit")
		case Ending:
			g.Deadline = t.at.Add(t.Limits.Kill)
			t.act(Signal{g.Epoch, syscall.SIGKILL})
			if !g.Killed { // one that even SIGKILL can't end is killed again and again
				g.Killed = true
				t.log(slog.LevelWarn, "epoch ignored SIGTERM and is killed", "epoch", g.Epoch)
			}
		}
	}
	t.leave()
	if t.Stage == Stopping && !t.StopBy.IsZero() && !t.at.Before(t.StopBy) {
		t.log(slog.LevelWarn, "stop: the wait for connections is over; what is left is cut")
		t.close()
	}
}

func (t *turn) notInTime(g *Generation) string {
	what := "not LIVE"
	if g.Phase == Live {
		what = "LIVE, but not verified"
	}
	text := fmt.Sprintf("%s after %s", what, t.at.Sub(g.LaunchedAt).Round(time.Millisecond))
	if len(g.Missing) > 0 {
		text += "; missing: " + strings.Join(g.Missing, "; ")
	}
	return text
}

func (t *turn) exited(e Exited) {
	g := t.gen(e.Epoch)
	if g == nil {
		return
	}
	if g.Foreign {
		t.peerEnded(g, e)
		return
	}
	if e.Rival && g.Phase == Serving && t.newcomer() == nil && t.Stage < Closing {
		t.endedUnderRival(g)
	}
	switch g.Phase {
	case Starting, Live:
		g.Reaped = true
		t.act(Measure{"child_exits", 1, "newcomer"})
		t.takeBack(g, "start", "the newcomer ended by itself ("+e.Status+")")
	case Removing: // TakeBack reaps it, and removed counts it
	case Serving:
		t.crashed(g, e)
	default:
		t.oldEnded(g, e)
	}
}

// oldEnded: an old epoch was ended, or ended by itself. Envoy's own timer ends
// it where there is no limit of ours; everything else came too early.
func (t *turn) oldEnded(g *Generation, e Exited) {
	switch {
	case g.Phase == Ending:
		t.act(Measure{"child_exits", 1, "expected"})
	case !g.Limit && e.Code < ExitSignal:
		g.EndedBy = "protocol"
		t.act(Measure{"child_exits", 1, "expected"}, Measure{"parents_ended", 1, g.EndedBy})
	default:
		g.EndedBy = "early"
		t.act(Measure{"child_exits", 1, "early"}, Measure{"parents_ended", 1, g.EndedBy})
		t.log(slog.LevelWarn, "a draining epoch ended before its time; the connections it had are cut",
			"epoch", g.Epoch, "connections", g.Connections, "log", e.Log)
	}
	t.log(slog.LevelInfo, "old epoch has ended", "epoch", g.Epoch, "status", e.Status)
	t.gone(e.Epoch)
}

func (t *turn) gone(epoch int) {
	if g := t.gen(epoch); !g.DrainingFrom.IsZero() {
		t.act(Measure{"drain.duration", t.at.Sub(g.DrainingFrom).Seconds(), ""}, Released{epoch, g.DrainingFrom, g.EndedBy})
	}
	t.drop(epoch)
	t.act(Forget{epoch})
	t.lookAfter(epoch)
}

// crashed: the newest committed epoch ended by itself, so nothing serves. The
// marker goes first. A newcomer that has a relay may still become serving,
// because the relay answers for the dead parent (fact 4); one that has none is
// taken back. Else a parent that still drains makes the same number possible
// again.
func (t *turn) crashed(g *Generation, e Exited) {
	t.act(Withdraw{}, Measure{"child_exits", 1, "crash"})
	text := fmt.Sprintf("epoch %d ended by itself: %s", g.Epoch, e.Status)
	t.LastFailure = &Failure{At: t.at, Epoch: g.Epoch, Step: "serve", Text: text, Log: e.Log}
	t.log(slog.LevelError, "the serving epoch ended by itself", "epoch", g.Epoch, "status", e.Status, "log", e.Log)
	t.lose(g)
	t.gone(e.Epoch)
	if t.Leaving != nil { // nobody has come to take over
		t.stopNow(t.Leaving.By)
	}
	if t.Stage != Running {
		return
	}
	t.Code, t.Reason = cmp.Or(e.Code, ExitNewest), text
	switch n := t.newcomer(); {
	case n == nil || !n.uncommitted():
		t.respawn()
	case n.Input.Mode == ModePlain: // it can't: Envoy aborts (fact 4), or waits for ever
		t.takeBack(n, "start", "its parent has ended, and without a relay nobody answers in its place")
		t.act(TakeBack{Epoch: n.Epoch, Hasty: true}) // nothing serves meanwhile
	default:
		t.log(slog.LevelWarn, "the newcomer goes on without its parent", "epoch", n.Epoch)
	}
}
