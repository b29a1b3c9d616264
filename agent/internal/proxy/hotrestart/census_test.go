package hotrestart

import (
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// seated is a census of epochs that live; those below zero are not committed.
func seated(epochs ...int) (c census) {
	for _, e := range epochs {
		s := sitting{live: true, tended: true, epoch: max(e, -e), committed: e >= 0}
		c.seats[s.epoch%envoy.Seats] = s
	}
	return c
}

// Rule 10: who is who comes from live processes.
func TestRule10WhoIsTheNewest(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     census
		newest int
		awaits string
	}{
		{"nobody", seated(), -1, ""},
		{"one", seated(7), 7, ""},
		{"and its draining parent", seated(6, 7), 7, ""},
		{"around the corner", seated(2, 3), 3, ""},
		{"its parent has ended, and its parent's parent has not", seated(0, 2), 2, "epoch 0 to end"},
		{"all three: once the oldest has ended", seated(5, 6, 7), 7, "epoch 5 to end"},
		{"a newcomer of somebody else is on its way", seated(7, -8), 8, "epoch 8 to be committed"},
		{"its successor has died: nobody serves", seated(7), 7, ""},
		{"the first is on its way", seated(-1), 1, "epoch 1 to be committed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := c.at.judge(time.Minute, time.Minute)
			if v.newest != c.newest || (v.awaits == "") != (c.awaits == "") || !strings.Contains(v.awaits, c.awaits) {
				t.Errorf("%+v, want %d, %q", v, c.newest, c.awaits)
			}
			if v.awaits != "" && v.atMost != time.Minute {
				t.Errorf("waits for %s", v.atMost)
			}
		})
	}
}

func TestAnEnvoyWithoutItsSupervisorIsGivenTimeToEnd(t *testing.T) {
	at := seated(4)
	at.seats[1].tended = false
	if v := at.judge(time.Minute, time.Minute); v.newest != 4 || v.atMost != goodbye || v.refused {
		t.Errorf("%+v", v)
	}
}

func TestAStrangerIsNeverTakenOverFrom(t *testing.T) {
	at := seated(4)
	at.stranger = "seat 2 is held by an Envoy of another state directory"
	if v := at.judge(time.Minute, time.Minute); v.newest != -1 || !v.refused || v.awaits != at.stranger {
		t.Errorf("%+v", v)
	}
}

func TestWhoSaysNoNumberIsNeverNewerThanTheHeartbeat(t *testing.T) {
	sh := &shell{Supervisor: &Supervisor{cfg: Config{StateDir: t.TempDir()}}}
	sh.dirs = envoy.SeatDirs{StateDir: sh.cfg.StateDir}
	want := func(numbers ...int) {
		t.Helper()
		for seat, n := range numbers {
			if got, committed := sh.numberAt(seat); got != n || committed {
				t.Errorf("seat %d: %d, %t; want %d", seat, got, committed, n)
			}
		}
	}
	want(0, 1, 2)
	if err := coordination.WriteHeartbeat(sh.cfg.StateDir, coordination.Heartbeat{Epoch: 7}); err != nil {
		t.Fatal(err)
	}
	want(6, 7, 5)
}
