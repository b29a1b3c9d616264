package hotrestart

import (
	"fmt"
	"log/slog"
	"time"
)

// This file is when the supervisor may replace its own program: while one epoch of
// ours serves and no handoff is under way. Old epochs may drain meanwhile.

// Upgrade is a replacement that waits for such a moment, or is being carried out.
type Upgrade struct {
	Since time.Time
	Going bool
}

// Upgraded is how the last one went.
type Upgraded struct {
	At       time.Time
	From, To string // versions
	Error    string // "" when To runs
}

// wantsUpgrade makes handoffs that nobody waits for wait: steady triggers must not
// starve it.
func (t *turn) wantsUpgrade() {
	if t.Upgrade == nil && t.Stage == Running {
		t.Upgrade, t.LastUpgrade = &Upgrade{Since: t.at}, nil
	}
}

// upgradeOver ends it without success.
func (t *turn) upgradeOver(e UpgradeOver) {
	if t.Upgrade != nil {
		t.Upgrade = nil
		t.LastUpgrade = &Upgraded{At: t.at, From: e.From, To: e.To, Error: e.Error}
		t.log(slog.LevelWarn, "the supervisor goes on with its old program", "new", e.To, "error", e.Error)
	}
}

// tookOver is the new program's first event.
func (t *turn) tookOver(e TookOver) {
	t.Upgrade, t.Upgrades = nil, t.Upgrades+1
	t.LastUpgrade = &Upgraded{At: t.at, From: e.From, To: e.To}
	t.log(slog.LevelInfo, "the supervisor goes on with its new program", "old", e.From, "new", e.To, "epoch", t.servingEpoch())
}

// upgrade begins when nothing is under way, and has it looked at again when
// something has come in between.
func (t *turn) upgrade() {
	if t.Upgrade == nil {
		return
	}
	quiet := t.State.unquiet() == ""
	if quiet && !t.Upgrade.Going {
		t.act(Replace{})
	}
	t.Upgrade.Going = quiet
}

// unquiet is why the program can't be replaced now; "": it can.
func (s *State) unquiet() string {
	g := s.ours()
	switch {
	case s.Stage != Running || s.Leaving != nil:
		return "the supervisor is stopping"
	case s.Rival != nil:
		return fmt.Sprintf("epoch %d of another pod takes over from ours", s.Rival.Epoch)
	case g == nil:
		return "no epoch of ours serves"
	case s.newcomer() != nil:
		return fmt.Sprintf("epoch %d is %s", s.newcomer().Epoch, s.newcomer().Phase)
	case s.Reading != nil || s.Ready != nil:
		return "a handoff is being prepared"
	case s.Wanted != nil && len(s.Wanted.Waiters) > 0:
		return "somebody waits for a reload"
	case g.Asking:
		return "the serving epoch is silent, and is being asked whether it lives"
	}
	return ""
}

// holds tells whether a wish waits for the upgrade.
func (s *State) holds(w *Want) bool {
	return s.Upgrade != nil && len(w.Waiters) == 0 && s.ours() != nil
}
