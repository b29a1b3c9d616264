package real

import (
	"strings"
	"testing"
	"time"

	"aether.internal/test/node"
)

// Rule 6: a parent is ended when it is idle or at its limit, never earlier.

func TestRule6AnIdleParentIsEndedAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--parent-shutdown-time", "1h", "--drain-time", "1m") // no timer can help
	for epoch := 1; epoch <= 3; epoch++ {
		s.hup()
		s.await("the parent to be gone", node.Alone(epoch))
	}
	s.until("three parents to have ended with exit code 0", func() bool { return s.run.Logged(`"status":"exit code 0"`) == 3 })
	if n := s.run.Logged(`"why":"idle"`); n != 3 || s.run.Logged("old epoch is ended") != 3 {
		t.Errorf("%d parents were ended as idle, want 3", n)
	}
	s.stop()
}

// Envoy's own timer would cut the stream; the relay keeps it away.
func TestRule6AStreamKeepsItsParentAlive(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "1h", "--handoff-deadline", "1m")
	held := s.stream()
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	s.stays(4*time.Second, "the parent drains with one connection", func(st node.Status) bool {
		e := st.Of(0)
		return e != nil && e.State == "draining" && e.Connections <= 1
	})
	s.flows(held)
	if st := s.status(); st.Of(0).Connections != 1 || st.Of(0).TimeLeftSeconds < 3000 {
		t.Errorf("%+v", st.Of(0))
	}
	held.conn.Close()
	s.await("the parent to be gone", node.Alone(1))
	s.inOrder("epoch serves", `"why":"idle"`)
	s.stop()
}

func TestRule6AStreamIsCutOnlyAtTheLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "4s")
	held := s.stream()
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	committed := time.Now()
	s.loadWith(quiet(s.Target()))
	s.wasCut(held, committed.Add(3500*time.Millisecond)) // as seen by polling
	s.await("the parent to be gone", node.Alone(1))
	s.logsOnce(`"why":"limit"`)
	s.unharmed()
	s.stop()
}

func TestRule6ThreeGenerationsAndAFourthThatWaits(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "1h")
	s.loadWith(quiet(s.Target()))
	held := s.threeGenerations()
	s.write("v4")
	s.await("the fourth to wait for the oldest", func(st node.Status) bool {
		return st.Pending != nil && strings.Contains(st.Pending.WaitsFor, "epoch 0 (draining, 1 connections) to end")
	})
	s.stays(time.Second, "the fourth waits", func(st node.Status) bool { return st.Serving == 2 && len(st.Epochs) == 3 })
	for _, h := range held {
		s.flows(h)
	}
	held[1].conn.Close() // the middle one's end makes no room: its number mod 3 is another
	s.await("the middle one to be gone", func(st node.Status) bool { return st.Of(1) == nil })
	if st := s.status(); st.Serving != 2 || st.Of(0) == nil {
		t.Errorf("%+v", st)
	}
	held[0].conn.Close()
	s.await("epoch 3 to serve", node.Serves(3))
	s.unharmed()
	s.stop()
}

func TestRule4ForceEndsTheOldestOfThree(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "1h")
	held := s.threeGenerations()
	if code, out := s.proxyctl("reload", "--wait", "--force"); code != 0 || !strings.Contains(out, "epoch 3 serves") {
		t.Errorf("exit code %d: %s", code, out)
	}
	s.wasCut(held[0], time.Time{})
	s.flows(held[1])
	s.inOrder("force: the oldest epoch is ended", `"why":"forced"`, `"msg":"epoch serves","epoch":3`)
	held[1].conn.Close() // a stop would wait for it up to its epoch's limit
	s.stop()
}

// threeGenerations has epochs 0 and 1 draining, each with a stream, and 2 serving.
func (s *stage) threeGenerations() []*stream {
	s.Helper()
	var held []*stream
	for epoch := 1; epoch <= 2; epoch++ {
		held = append(held, s.stream())
		s.hup()
		s.await("the next epoch to serve", node.Serves(epoch))
	}
	s.await("one connection of each", func(st node.Status) bool {
		return st.Of(0) != nil && st.Of(1) != nil && st.Of(0).Connections == 1 && st.Of(1).Connections == 1
	})
	return held
}
