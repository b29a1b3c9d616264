package hotrestart

import (
	"log/slog"
	"testing"
)

// A number is used again after a failed try, and by a respawn: what is still to
// be said of the dead child must not be taken for its successor's.
func TestNothingIsToldOfAChildThatIsNoLongerCurrent(t *testing.T) {
	s := New(Config{}, slog.New(slog.DiscardHandler), nil)
	older, newer := &child{epoch: 1}, &child{epoch: 1}
	sh := &shell{Supervisor: s, ctx: t.Context(), children: map[int]*child{1: newer}}
	sh.state.Limits = testLimits
	sh.state.Gens = []Generation{{Epoch: 1, Phase: Serving}}
	owner := make(chan struct{})
	go func() {
		defer close(owner)
		for range 2 {
			(<-s.asks)(sh)
		}
	}()
	sh.tell(older, Silenced{Epoch: 1})
	if !sh.state.Gens[0].SilentFrom.IsZero() {
		t.Error("the dead one's silence is the living one's")
	}
	sh.tell(newer, Silenced{Epoch: 1})
	if <-owner; sh.state.Gens[0].SilentFrom.IsZero() {
		t.Error("its own silence is not told")
	}
}
