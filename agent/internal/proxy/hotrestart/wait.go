package hotrestart

import (
	"fmt"
	"log/slog"
	"time"
)

// This file is what a handoff that was asked for waits for: status tells it
// whenever it is asked, the log once for each epoch that is in the way.

// waitsOn is the epoch that has to go on, or to end, before the pending wish can;
// nil when none has.
func (s *State) waitsOn() *Generation {
	if s.Stage != Running || s.Rival != nil || s.Ready == nil && (s.Wanted == nil || s.Reading != nil) {
		return nil
	}
	if n := s.newcomer(); n != nil {
		return n
	}
	if s.Ready == nil {
		return nil
	}
	t := turn{State: *s}
	return t.inTheWay()
}

// tellWait writes one line for each epoch that a wish has to wait for, not for
// each look at it.
func (t *turn) tellWait() {
	g := t.waitsOn()
	if g == nil {
		t.ToldWait = 0
		return
	}
	if t.ToldWait == g.Epoch+1 {
		return
	}
	t.ToldWait = g.Epoch + 1
	w := t.Wanted
	if t.Ready != nil {
		w = &t.Ready.Want
	}
	attrs := []any{"for", t.waitsFor(), "wanted", t.at.Sub(w.Since).Round(time.Millisecond).String()}
	if g.Phase == Draining && g.Limit {
		attrs = append(attrs, "at most", g.Deadline.Sub(t.at).Round(time.Millisecond).String())
	}
	t.log(slog.LevelInfo, "a handoff waits", attrs...)
}

func (s *State) waitsFor() string {
	g := s.waitsOn()
	switch {
	case s.Rival != nil:
		return fmt.Sprintf("epoch %d of another pod to take over or to go", s.Rival.Epoch)
	case s.Reading != nil && s.Reading.Waits != "":
		return s.Reading.Waits
	case g == nil && s.Ready != nil: // it may hang
		return "the serving epoch's hot-restart socket, which is being asked"
	case g == nil && s.Upgrade != nil && s.Reading == nil:
		return "the supervisor's own upgrade"
	case g == nil:
		return "the bootstrap that is being validated"
	case g.uncommitted() || g.Phase == Removing:
		return fmt.Sprintf("epoch %d (%s) to be committed or taken back", g.Epoch, g.Phase)
	}
	return fmt.Sprintf("epoch %d (%s, %d connections) to end", g.Epoch, g.Phase, g.Connections)
}
