package main

import (
	"context"
	"fmt"
	"time"
)

// step is one line of the story. Its report says how long Do began to Want took.
type step struct {
	title string // of a row in a table
	say   string // for whoever watches
	do    func(ctx context.Context, look look) error
	want  want
	watch time.Duration // how long to look on when it is as wanted
}

// look watches for a while in the middle of a step.
type look func(time.Duration) error

// want is what a step must lead to. before is what was seen when it began.
type want struct {
	what string
	met  func(before, now sight) bool
}

// burst is how many bootstraps are written in the last edit, and how often.
const (
	burst         = 20
	burstInterval = 50 * time.Millisecond
)

// story is the demo: what is done to a node under load, and what must come of
// it.
func story(s *stage) []step {
	return append(opening(s), append(changes(s), ending(s)...)...)
}

func opening(s *stage) []step {
	return []step{
		{
			title: "start",
			say:   fmt.Sprintf("Start Envoy %s under the supervisor.", s.envoys.old.version),
			do:    s.start,
			want:  want{"epoch 0 to serve", serves("v1", s.envoys.old.version)},
		},
		{
			title: "load",
			say:   "Put load on it: HTTP/1.1, HTTP/2, gRPC, TCP, short and streaming, with and without TLS.",
			do:    s.startLoad,
			want:  want{"the first answers", answers},
			watch: 4 * s.pace,
		},
	}
}

// changes are what would cut every connection with a plain restart.
func changes(s *stage) []step {
	return []step{
		{
			title: "new bootstrap",
			say:   "Change the bootstrap. Epoch 1 takes over; epoch 0 finishes its streams.",
			do:    s.write("v2"),
			want:  want{"v2 to serve", serves("v2", "")},
			watch: 5 * s.pace,
		},
		{
			title: "another one",
			say:   "Change it again.",
			do:    s.write("v3"),
			want:  want{"v3 to serve", serves("v3", "")},
			watch: s.pace,
		},
		{
			title: "and at once another",
			say:   "And again, while the last two still drain: three generations live at once.",
			do:    s.write("v4"),
			want:  want{"v4 to serve", serves("v4", "")},
			watch: 4 * s.pace,
		},
		{
			title: "broken bootstrap",
			say:   "Write a bootstrap with a typing error. It is validated first, and refused.",
			do:    s.writeBroken,
			want:  want{"it to be refused", refused("validate")},
			watch: 2 * s.pace,
		},
		{
			title: "bootstrap that can't start",
			// The newcomer ends with the parent's admin, and that is cured (fact 6).
			say:   "Write one that is valid and can't work: its port is taken. The new epoch is taken back, and one more brings back the admin that it took.",
			do:    s.writeTaken,
			want:  want{"the newcomer to be taken back, and the admin to be back", takenBack("v4")},
			watch: 2 * s.pace,
		},
		{
			title: "good bootstrap again",
			say:   "Put the last good one back. It is what serves already: nothing happens.",
			do:    s.write("v4"),
			want:  want{"no restart", unchanged},
			watch: s.pace,
		},
		{
			title: "new binary: " + s.envoys.upgrade(),
			say:   s.envoys.say(),
			do:    s.swapBinary,
			want:  want{"the new binary to serve", another(serves("v4", s.envoys.new.version))},
			watch: 5 * s.pace,
		},
		{
			title: "SIGHUP",
			say:   "Send SIGHUP: the same again, as a new epoch.",
			do:    s.hup,
			want:  want{"another epoch to serve", another(serves("v4", ""))},
			watch: 4 * s.pace,
		},
		{
			title: fmt.Sprintf("%d bootstraps in a second", burst),
			say:   fmt.Sprintf("Write %d bootstraps in a second. They collapse, and the newest wins.", burst),
			do:    s.writeMany("v5", burst),
			want:  want{"the newest to serve", serves(fmt.Sprintf("v5.%d", burst), "")},
			watch: 4 * s.pace,
		},
	}
}

func ending(s *stage) []step {
	return []step{
		{
			title: "end of the load",
			say:   "Stop the load; what is under way may finish.",
			do:    s.stopLoad,
			want:  want{"the last answer", func(_, now sight) bool { return now.loadEnded }},
		},
		{
			title: "SIGTERM",
			say:   "Stop the supervisor.",
			do:    s.terminate,
			want:  want{"exit code 0", func(_, now sight) bool { return now.ended && now.code == 0 }},
		},
	}
}
