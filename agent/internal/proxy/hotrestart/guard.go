package hotrestart

import (
	"log/slog"
	"syscall"
	"time"
)

// This file is what becomes of an Envoy that hangs. A silent admin alone proves
// nothing: it is dark in every handoff that shares it, for good after a newcomer
// that failed late (fact 6), and for seconds in a big stats merge (fact 25).

func (t *turn) silenced(e Silenced) {
	g := t.gen(e.Epoch)
	switch {
	case g == nil || g.Foreign:
	case e.Ends:
		g.SilentFrom, g.Told = time.Time{}, false
	case g.SilentFrom.IsZero():
		g.SilentFrom = t.at
	}
}

// guard has the serving epoch's hot-restart socket asked once its admin has
// been silent for long: both are answered by the same thread of Envoy's.
func (t *turn) guard() {
	g := t.serving()
	if t.Stage != Running || g == nil || g.Asking || g.SilentFrom.IsZero() || t.at.Before(g.SilentFrom.Add(t.Limits.Silent)) {
		return
	}
	if t.newcomer() != nil || t.Rival != nil { // it has the admin, and it is whom that socket answers
		g.SilentFrom = t.at
		return
	}
	g.Asking = true
	t.act(Ask{g.Epoch})
}

// asked ends an epoch that answers nowhere, if it is nobody's parent: then it
// does no harm to anybody else, and whoever keeps us starts anew.
func (t *turn) asked(e Asked) {
	g := t.gen(e.Epoch)
	if g == nil || !g.Asking {
		return
	}
	g.Asking = false
	if g.SilentFrom.IsZero() || g.Phase != Serving || t.Stage != Running || t.Rival != nil {
		return
	}
	silent := t.at.Sub(g.SilentFrom).Round(time.Millisecond).String()
	if !e.Answers {
		t.act(Measure{"wedges", 1, "unresponsive"}, Signal{g.Epoch, syscall.SIGKILL})
		t.log(slog.LevelError, "the serving epoch answers neither on its admin nor on its hot-restart socket; it is ended", "epoch", g.Epoch, "silent", silent)
		return
	}
	g.SilentFrom = t.at // asked again after another deadline
	if !g.Told {
		g.Told = true
		t.log(slog.LevelWarn, "the serving epoch's admin is silent, but it lives: its hot-restart socket answers", "epoch", g.Epoch, "silent", silent)
	}
	if t.Heal == nil && t.newcomer() == nil && t.ours() != nil {
		t.adminLost() // perhaps to another pod's newcomer, which came and went before we saw it
	}
}
