package configwatch

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var (
	testPace = pace{settle: 100 * time.Millisecond, max: time.Second}
	t0       = time.Unix(1_000_000, 0)
)

func at(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }

// step is one event or one look, at a millisecond, and what follows from it.
type step struct {
	ms   int
	do   string // "event", "swap", "see X" or "miss"
	want verdict
	due  int // the next look's millisecond; 0: none
}

func TestTracker(t *testing.T) {
	for name, steps := range map[string][]step{
		"nothing new": {
			{5000, "see A", quiet, 0},
		},
		"a swap is told at its first look": {
			{5000, "swap", quiet, 5000},
			{5000, "see B", settled, 0},
			{5001, "event", quiet, 5100}, // its echo is not urgent
			{5100, "see B", quiet, 0},
		},
		"a swap to the same content is nothing": {
			{5000, "swap", quiet, 5000},
			{5000, "see A", quiet, 0},
		},
		"a write is told when two looks agree": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5050, "event", quiet, 5100},
			{5100, "see B", settled, 0},
		},
		"looks that don't agree start again": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5100, "see C", quiet, 5200},
			{5200, "see C", settled, 0},
		},
		"looks too close to each other don't count": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5020, "see B", quiet, 5100},
			{5100, "see B", settled, 0},
		},
		"a swap ends the waiting for a write": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5030, "swap", quiet, 5030},
			{5030, "see C", settled, 0},
		},
		"the poll needs two looks as well": {
			{5000, "see B", quiet, 5100},
			{5100, "see B", settled, 0},
		},
		"written and taken back": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5100, "see A", quiet, 0},
			{9000, "event", quiet, 9000},
			{9000, "see B", quiet, 9100}, // and the second of waiting starts anew
		},
		"told once, then back again": {
			{5000, "swap", quiet, 5000},
			{5000, "see B", settled, 0},
			{6000, "swap", quiet, 6000},
			{6000, "see A", settled, 0},
		},
		"steady writes are told after a second": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5100, "see C", quiet, 5200},
			{5200, "see D", quiet, 5300},
			{5950, "see E", quiet, 6000}, // not later than that
			{6000, "see F", settled, 0},
			{6050, "event", quiet, 6100},
			{6100, "see G", quiet, 6200}, // and the next second begins
		},
		"a flood of events is one look per settle": {
			{5000, "event", quiet, 5000},
			{5000, "see A", quiet, 0},
			{5001, "event", quiet, 5100},
			{5002, "event", quiet, 5100},
			{5100, "see A", quiet, 0},
		},
		"missing in the middle of a swap": {
			{5000, "event", quiet, 5000},
			{5000, "miss", quiet, 5100},
			{5100, "see B", quiet, 5200},
			{5200, "see B", settled, 0},
		},
		"missing and back unchanged": {
			{5000, "event", quiet, 5000},
			{5000, "miss", quiet, 5100},
			{5100, "see A", quiet, 0},
		},
		"a look that misses breaks the agreement": {
			{5000, "event", quiet, 5000},
			{5000, "see B", quiet, 5100},
			{5100, "miss", quiet, 5200},
			{5200, "see B", quiet, 5300},
			{5300, "see B", settled, 0},
		},
		"missing for a second is lost, and what comes later takes two looks": {
			{5000, "event", quiet, 5000},
			{5000, "miss", quiet, 5100},
			{5900, "miss", quiet, 6000},
			{6000, "miss", lost, 0},
			{9000, "miss", lost, 0},
			{9500, "event", quiet, 9500},
			{9500, "see B", quiet, 9600},
			{9600, "see B", settled, 0},
		},
		"removed and written in a loop is told after a second": {
			{5000, "event", quiet, 5000},
			{5000, "miss", quiet, 5100},
			{5100, "see B", quiet, 5200},
			{5200, "miss", quiet, 5300},
			{5900, "miss", quiet, 6000},
			{6010, "see C", settled, 0},
		},
		"missed after a swap, then judged like a write": {
			{5000, "swap", quiet, 5000},
			{5000, "miss", quiet, 5100},
			{5100, "see B", quiet, 5200},
		},
	} {
		t.Run(name, func(t *testing.T) { play(t, steps) })
	}
}

func play(t *testing.T, steps []step) {
	tr := tracker{reported: "A"}
	for _, s := range steps {
		got := quiet
		var content string
		switch {
		case s.do == "event" || s.do == "swap":
			tr = tr.noticed(at(s.ms), s.do == "swap", testPace)
		case s.do == "miss":
			tr, got = tr.looked(at(s.ms), "", testPace)
		default:
			fmt.Sscanf(s.do, "see %s", &content)
			tr, got = tr.looked(at(s.ms), content, testPace)
		}
		var due time.Time
		if s.due != 0 {
			due = at(s.due)
		}
		if got != s.want || !tr.due.Equal(due) {
			t.Fatalf("%d ms, %s: verdict %v, due in %v; want %v, due in %v",
				s.ms, s.do, got, tr.due.Sub(at(s.ms)), s.want, due.Sub(at(s.ms)))
		}
	}
}

// Whatever the writes: while content differs, something is told at least once
// in a max and a settle, and in the end what was told last is what is there.
func TestTrackerStarvesNothing(t *testing.T) {
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		tr, content := tracker{reported: "A"}, "A"
		next, stop, fresh, told := 0, 500+rnd.IntN(4000), 0, 0
		for ms := 1; ms < stop+2000; ms++ {
			if ms == next && ms < stop || next == 0 {
				fresh++ // never the same twice
				content, next = fmt.Sprint(fresh), ms+1+rnd.IntN(150)
				tr = tr.noticed(at(ms), false, testPace)
				if told == 0 {
					told = ms
				}
			}
			if tr.due.IsZero() || at(ms).Before(tr.due) {
				continue
			}
			var v verdict
			if tr, v = tr.looked(at(ms), content, testPace); v == settled {
				told = ms
			} else if tr.reported != content && ms-told > 1100 {
				t.Fatalf("seed %d: nothing told between %d and %d ms", seed, told, ms)
			}
		}
		if tr.reported != content {
			t.Fatalf("seed %d: told %q, there is %q", seed, tr.reported, content)
		}
	}
}
