package hotrestart

import (
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
)

// Rule 10: who is who comes from live processes; a recorded number decides only
// the digits above the seat's.
func TestRule10WhoIsTheNewest(t *testing.T) {
	const noBeat = -1
	for _, c := range []struct {
		name   string
		live   string // seats
		beat   int
		newest int
		awaits string
		atMost time.Duration
	}{
		{"nobody", "", noBeat, -1, "", 0},
		{"nobody, and a heartbeat of a former life", "", 5, -1, "", 0},
		{"the heartbeat's", "1", 7, 7, "", 0},
		{"and its draining parent", "01", 7, 7, "", 0},
		{"after seat 2 comes epoch 3", "2", 2, 2, "", 0},
		{"around the corner", "20", 3, 3, "", 0},
		{"all three: the heartbeat's, once the oldest has ended", "012", 7, 7, "the oldest of three", time.Minute},
		{"a newcomer of somebody else is on its way", "12", 7, 8, "epoch 8 to be committed", time.Minute},
		{"its successor has died: nobody serves", "1", 8, 7, "", 0},
		{"the same, at the beginning", "2", 0, 2, "", 0},
		{"no heartbeat: the smallest that fits, after a while", "2", noBeat, 2, "epoch 2 to be committed", time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			var at census
			for seat := range at.live {
				at.live[seat] = strings.Contains(c.live, string(rune('0'+seat)))
				at.tended[seat] = at.live[seat]
			}
			if c.beat != noBeat {
				at.beats, at.heartbeat = true, coordination.Heartbeat{Epoch: c.beat}
			}
			v := at.judge(time.Minute)
			if v.newest != c.newest || (v.awaits == "") != (c.awaits == "") || !strings.Contains(v.awaits, c.awaits) || v.atMost != c.atMost {
				t.Errorf("%+v, want %+v", v, c)
			}
		})
	}
}

func TestAnEnvoyWithoutItsSupervisorIsGivenTimeToEnd(t *testing.T) {
	at := census{beats: true, heartbeat: coordination.Heartbeat{Epoch: 4}}
	at.live[1] = true
	if v := at.judge(time.Minute); v.newest != 4 || v.atMost != goodbye || v.refused {
		t.Errorf("%+v", v)
	}
}

func TestAStrangerIsNeverTakenOverFrom(t *testing.T) {
	at := census{stranger: "seat 2 is held by an Envoy of another state directory"}
	at.live[1], at.tended[1] = true, true
	if v := at.judge(time.Minute); v.newest != -1 || !v.refused || v.awaits != at.stranger {
		t.Errorf("%+v", v)
	}
}
