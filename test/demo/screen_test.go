package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"aether.internal/test/demo/report"
	"aether.internal/test/load"
	"aether.internal/test/node"
)

func busySight(at time.Time) sight {
	return sight{at: at, rate: 331.7, done: 10, status: node.Status{Serving: 4, Epochs: []node.Epoch{
		{Epoch: 2, State: "draining", Connections: 9}, {Epoch: 3, State: "draining"}, {Epoch: 4, State: "serving", Connections: 40},
	}}}
}

const busyLine = " 12.3 s   332/s  0 failed   [2 draining 9] [3 draining] [4 serving]"

func TestPlainScreen(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.step(3, 13, "Change it.")
	s.progress(sight{at: noon}, time.Second) // no load yet: nothing to tell
	for i := range 60 {                      // six seconds
		s.progress(busySight(noon.Add(time.Duration(i)*100*time.Millisecond)), 12300*time.Millisecond)
	}
	s.outcome(report.Step{Outcome: "epoch 1 serves", Took: 142 * time.Millisecond})
	s.outcome(report.Step{Outcome: "disk full", Failed: true})
	want := " 3/13  Change it.\n       " + busyLine + "\n       " + busyLine + "\n       ok  epoch 1 serves (142 ms)\n       NO  disk full (0)\n"
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

func TestTerminalHasOneLivingLine(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, width: func() int { return 60 }}
	s.progress(busySight(noon), 12300*time.Millisecond)
	s.progress(busySight(noon.Add(50*time.Millisecond)), 12300*time.Millisecond) // too soon
	s.progress(busySight(noon.Add(100*time.Millisecond)), 12300*time.Millisecond)
	s.say("done")
	s.say("more")
	line := "\r\x1b[2K" + ("       " + busyLine)[:59]
	if want := line + line + "\r\x1b[2Kdone\nmore\n"; out.String() != want {
		t.Errorf("%q\nwant %q", out.String(), want)
	}
}

func TestPaint(t *testing.T) {
	for in, want := range map[string]string{
		"0 failed [1 serving]":         "0 failed \x1b[32m[1 serving]\x1b[0m",
		"10 failed [1 starting]":       "\x1b[1;31m10 failed\x1b[0m \x1b[33m[1 starting]\x1b[0m",
		"[1 draining 5] [2 removing]":  "\x1b[2m[1 draining 5]\x1b[0m \x1b[31m[2 removing]\x1b[0m",
		"[1 draining 5] [2 serv":       "\x1b[2m[1 draining 5]\x1b[0m \x1b[2m[2 serv\x1b[0m", // clipped
		"12.3 s  332/s  nobody serves": "12.3 s  332/s  nobody serves",
	} {
		if got := paint(in); got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

func TestNobodyServes(t *testing.T) {
	if got := progress(sight{status: node.Status{Serving: -1}}, 0); !strings.HasSuffix(got, "nobody serves") {
		t.Errorf("%q", got)
	}
}

func TestClipCountsLetters(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{{"µµµµ", 4, "µµµµ"}, {"µµµµ", 2, "µµ"}, {"x", 0, ""}, {"x", -1, ""}} {
		if got := clip(c.text, c.width); got != c.want {
			t.Errorf("clip(%q, %d) = %q", c.text, c.width, got)
		}
	}
}

func TestLastSecond(t *testing.T) {
	r := load.Report{Duration: 3050 * time.Millisecond}
	for i := range 16 {
		r.Timeline = append(r.Timeline, load.Bucket{OffsetMS: int64(i) * width.Milliseconds(), OK: 10 * (i + 1), Failed: 1})
	}
	// Whole buckets within the last second and a bucket: 2.0 s to 3.0 s.
	if got, want := lastSecond(r), float64(110+120+130+140+150+5); got != want {
		t.Errorf("%g, want %g", got, want)
	}
	if got := lastSecond(load.Report{Duration: time.Second}); got != 0 {
		t.Errorf("%g without a timeline", got)
	}
}

func TestSummary(t *testing.T) {
	r := report.Run{
		Began:    noon,
		Load:     load.Report{Start: noon.Add(time.Second), Errors: []load.Error{{Kind: "new", TLS: true, Epoch: "v1", Offset: 4 * time.Second, Heading: "reset", Message: "by peer"}}, Kinds: []load.KindReport{{Kind: "new", Started: 1200, OK: 1199, Failed: 1, Retried: 2, Overrun: 3, P99: 5 * time.Millisecond, Max: 30 * time.Millisecond}}},
		Handoffs: []report.Handoff{{From: -1, To: 0, Live: time.Second}, {From: 0, To: 1, Prepare: 90e6, Live: 50e6, Verify: 2e6}},
		Lanes: []report.Lane{
			{Epoch: 0, Tag: "v1", Version: "1.39.3", Phases: []report.Phase{{Name: "serving", To: 4e9}, {Name: "draining", From: 4e9, To: 7e9}}},
			{Epoch: 1, Tag: "v2", Version: "1.40.0", Phases: []report.Phase{{Name: "serving", From: 4e9, To: 9e9}}},
		},
		Refusals: []report.Refusal{{Epoch: 2, Step: "validate"}, {Epoch: 2, TakenBack: true}},
	}
	for _, want := range []string{
		"Dropped: 1 of 1,200 operations failed in 1 hot restart.",
		"1,200: 1 failed, 2 sent again as HTTP permits; this machine was too slow to start 3 more\n",
		"failed at 5.00 s, new with TLS, answered by v1: reset: by peer\n",
		"1: 142 ms at best, 142 ms median, 142 ms at worst, from the change",
		"2: an input for epoch 2 was refused (validate), epoch 2 was started and taken back",
		"2, at most 2 alive at once",
		"p99 from 5.0 ms to 5.0 ms by kind, at worst 30 ms",
		"       1          v2   1.40.0     90 ms    50 ms     2.0 ms   142 ms   5.00 s         0",
	} {
		if !strings.Contains(summary(r), want) {
			t.Errorf("without %q:\n%s", want, summary(r))
		}
	}
	if got := summary(report.Run{}); !strings.Contains(got, "0: none\n") || !strings.Contains(got, "not committed   0\n") {
		t.Errorf("of nothing:\n%s", got)
	}
}
