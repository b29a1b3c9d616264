package hotrestart

import (
	"log/slog"
	"time"
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
	case Silenced:
		t.silenced(e)
	case Asked:
		t.asked(e)
	case Drained:
		t.drained()
	case Stop:
		t.stop(e)
	case OutOfService:
		t.outOfService(e.Yes)
	case Reopen:
		t.reopen()
	case Awaits:
		t.awaits(e)
	case Sighted:
		t.sighted(e)
	case Followed:
		t.followed(e.Epoch)
	case UpgradeWanted:
		t.wantsUpgrade()
	case UpgradeOver:
		t.upgradeOver(e)
	case TookOver:
		t.tookOver(e)
	case Tick:
	}
	t.expire()
	t.guard()
	t.advance()
	t.tellWait()
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
		t.takeNode()
		t.heal()
		t.read()
		t.launch()
		t.endWithoutHope()
		t.upgrade()
	case Stopping:
		t.drainAll()
	case Closing:
		if len(t.Gens) == 0 {
			t.Stage = Done
		}
	}
}

// endWithoutHope ends the supervisor when nothing serves and nothing is on its
// way to.
func (t *turn) endWithoutHope() {
	if t.serving() != nil || t.newcomer() != nil || t.Ready != nil || t.Reading != nil || t.Wanted != nil || t.Rival != nil {
		return
	}
	if t.Code == 0 {
		return // not started yet
	}
	t.close()
}
