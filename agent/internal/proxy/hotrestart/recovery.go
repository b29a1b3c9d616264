package hotrestart

import (
	"log/slog"
	"time"
)

// This file is what the supervisor tries again without being asked.

const (
	maxRespawns = 3           // of one epoch, until it has lived for steadyTime
	steadyTime  = time.Minute // an epoch that lived this long starts with a clean record
	firstHeal   = time.Second
	mostHeal    = 5 * time.Minute
)

// Lost is the newest epoch after it died by itself while an older one still
// drained.
type Lost struct {
	Epoch int
	Input Input
	Tries int
}

// Heal is a handoff with the last good input, for a serving epoch that has
// lost the admin it shared to a newcomer that was taken back (fact 6).
type Heal struct {
	At    time.Time // zero while the try is under way
	Tries int
}

// respawn starts a dead newest epoch again, at the same number: only that
// number finds its draining parent, and is LIVE in under 0.1 s (fact 21).
func (t *turn) respawn() {
	if t.Stage != Running || t.Lost == nil || t.newcomer() != nil {
		return
	}
	parent := t.gen(t.Lost.Epoch - 1)
	if parent == nil || parent.Phase != Draining || t.Lost.Tries >= maxRespawns {
		t.Lost = nil
		t.cancel("the serving epoch ended by itself")
		return
	}
	t.putBack()
	t.Lost.Tries++
	t.act(Measure{"restart_triggers", 1, TriggerRespawn.String()})
	t.log(slog.LevelWarn, "the epoch is started again at the same number, from its draining parent", "epoch", t.Lost.Epoch, "parent", parent.Epoch, "try", t.Lost.Tries)
	t.Ready = &Ready{Want: Want{Triggers: []Trigger{TriggerRespawn}, Since: t.at}, Input: t.Lost.Input, Prep: Prep{ReadyAt: t.at}}
}

// putBack makes a wish again of an input that waited: it is read anew, later. A
// cure is nobody's wish: the file may hold something else by now, and whatever
// commits next has an admin.
func (t *turn) putBack() {
	r := t.Ready
	if r == nil {
		return
	}
	t.Ready = nil
	t.act(Discard{r.Input})
	if len(r.Want.Triggers) == 1 && r.Want.Triggers[0] == TriggerHeal {
		return
	}
	if t.Wanted == nil {
		t.Wanted = &Want{}
	}
	t.Wanted.merge(r.Want)
}

// lose remembers the newest epoch's end; one that had been steady has all its
// tries again.
func (t *turn) lose(g *Generation) {
	tries := g.Respawns
	if t.at.Sub(g.CommittedAt) >= steadyTime {
		tries = 0
	}
	t.Lost = &Lost{Epoch: g.Epoch, Input: g.Input, Tries: tries}
}

// adminLost plans the cure, with a growing pause between tries.
func (t *turn) adminLost() {
	tries := 0
	if t.Heal != nil {
		tries = t.Heal.Tries + 1
	}
	if t.Rival != nil {
		return // told again when that one has gone
	}
	pause := min(firstHeal<<min(tries, 10), mostHeal)
	t.Heal = &Heal{At: t.at.Add(pause), Tries: tries}
	t.log(slog.LevelWarn, "the serving epoch has lost its admin to the newcomer; a handoff with the last good input will give it back", "in", pause.String())
}

// heal launches the last good input again, once nothing else is on its way: any
// other handoff that commits is a cure as well.
func (t *turn) heal() {
	if !t.healable() || t.Heal.At.IsZero() || t.at.Before(t.Heal.At) {
		return
	}
	t.Heal.At = time.Time{}
	t.act(Measure{"restart_triggers", 1, TriggerHeal.String()})
	t.Ready = &Ready{Want: Want{Triggers: []Trigger{TriggerHeal}, Since: t.at}, Input: t.serving().Input, Prep: Prep{ReadyAt: t.at}}
}
