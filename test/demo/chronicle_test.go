package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aether.internal/test/demo/report"
	"aether.internal/test/node"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// glances writes down what a chronicle sees: each text is one glance, 100 ms
// after the one before, of epochs as "number/pid:state".
func glances(c *chronicle, texts ...string) {
	for i, text := range texts {
		now := sight{at: noon.Add(time.Duration(i) * 100 * time.Millisecond)}
		for word := range strings.FieldsSeq(text) {
			if waits, ok := strings.CutPrefix(word, "waits="); ok {
				now.status.Pending = &node.Pending{WaitsFor: strings.ReplaceAll(waits, "_", " ")}
				continue
			}
			e := node.Epoch{EnvoyVersion: "1.40.0", ConfigHash: "h"}
			if n, _ := fmt.Sscanf(word, "%d/%d:%s", &e.Epoch, &e.PID, &e.State); n != 3 {
				panic(word)
			}
			now.status.Epochs = append(now.status.Epochs, e)
			if e.State == "serving" && (i == 0 || e.Epoch > c.last.status.Serving) {
				h := &node.Handoff{From: e.Epoch - 1, To: e.Epoch}
				h.Milliseconds.Prepare, h.Milliseconds.Live, h.Milliseconds.Verify = 250, 40, 5
				now.status.LastHandoff = h
			}
			if e.State == "serving" {
				now.status.Serving = e.Epoch
			}
		}
		c.observe(now)
	}
}

// told writes lanes as "number: state from–to, …" in milliseconds.
func told(lanes []report.Lane) string {
	var out []string
	for _, l := range lanes {
		var phases []string
		for _, p := range l.Phases {
			phases = append(phases, fmt.Sprintf("%s %d–%d", p.Name, p.From.Milliseconds(), p.To.Milliseconds()))
		}
		out = append(out, fmt.Sprintf("%d: %s", l.Epoch, strings.Join(phases, ", ")))
	}
	return strings.Join(out, " | ")
}

func TestLanes(t *testing.T) {
	for name, c := range map[string]struct {
		seen  []string
		lines []node.Line
		want  string
	}{
		"one epoch": {
			seen: []string{"0/1:starting", "0/1:serving", "0/1:serving", ""},
			want: "0: starting 0–100, serving 100–300",
		},
		"still alive at the end": {
			seen: []string{"0/1:serving", "0/1:serving"},
			want: "0: serving 0–100",
		},
		"a handoff": {
			seen: []string{"0/1:serving", "0/1:serving 1/0:starting", "0/1:serving 1/2:live", "0/1:draining 1/2:serving", "1/2:serving"},
			want: "0: serving 0–300, draining 300–400 | 1: starting 100–200, live 200–300, serving 300–400",
		},
		"the log knows better": {
			seen:  []string{"0/1:serving", "0/1:serving 1/2:starting", "0/1:draining 1/2:serving", "1/2:serving"},
			lines: []node.Line{{Message: saysServes, Epoch: 1, Time: noon.Add(140 * time.Millisecond)}},
			want:  "0: serving 0–140, draining 140–300 | 1: starting 100–140, serving 140–300",
		},
		"the log knows the end": {
			seen: []string{"0/1:draining 1/2:serving", "0/1:draining 1/2:serving", "1/2:serving", "1/2:serving"},
			lines: []node.Line{
				{Message: saysEnded, Epoch: 0, Time: noon.Add(130 * time.Millisecond)},
				{Message: saysEnded, Epoch: 0, Time: noon.Add(240 * time.Millisecond)}, // seen to have ended by then
				{Message: saysEnded, Epoch: 1, Time: noon.Add(150 * time.Millisecond)}, // it serves
			},
			want: "0: draining 0–130 | 1: serving 0–300",
		},
		"a log that can't be right": {
			seen: []string{"0/1:serving", "0/1:serving 1/2:starting", "0/1:draining 1/2:serving", "1/2:serving"},
			lines: []node.Line{
				{Message: saysServes, Epoch: 1, Time: noon.Add(-time.Second)},
				{Message: saysServes, Epoch: 1, Time: noon.Add(time.Hour)},
				{Message: saysServes, Epoch: 1, Time: noon.Add(140 * time.Millisecond), Source: "envoy"},
			},
			want: "0: serving 0–200, draining 200–300 | 1: starting 100–200, serving 200–300",
		},
		"a number lived twice": {
			seen: []string{"0/1:serving 1/2:starting", "0/1:serving 1/2:removing", "0/1:serving", "0/1:serving 1/3:starting", "0/1:serving 1/3:starting"},
			want: "0: serving 0–400 | 1: starting 0–100, removing 100–200 | 1: starting 300–400",
		},
		"a number lived twice between two glances": {
			seen: []string{"1/2:starting", "1/3:starting", "1/3:starting"},
			want: "1: starting 0–100 | 1: starting 100–200",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var k chronicle
			glances(&k, c.seen...)
			if got := told(k.lanes(noon, c.lines, map[string]string{"h": "v1"})); got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

func TestLanesKnowTheirBootstrap(t *testing.T) {
	var k chronicle
	glances(&k, "0/1:serving")
	l := k.lanes(noon, nil, map[string]string{"h": "v7"})[0]
	if l.Tag != "v7" || l.Version != "1.40.0" {
		t.Errorf("%+v", l)
	}
}

func TestHandoffs(t *testing.T) {
	var k chronicle
	glances(&k, "0/1:serving", "0/1:serving 1/2:starting waits=epoch_1_(starting)_to_be_committed", "0/1:draining 1/2:serving waits=epoch_0_to_end",
		"1/2:serving 2/3:starting waits=the_bootstrap_is_being_validated", "1/2:draining 2/3:serving")
	lines := []node.Line{{Message: saysServes, Epoch: 2, Time: noon.Add(360 * time.Millisecond)}}
	got := k.commits(noon, lines)
	want := []report.Handoff{
		{From: -1, To: 0, Prepare: 250e6, Live: 40e6, Verify: 5e6},
		{From: 0, To: 1, Prepare: 250e6, Live: 40e6, Verify: 5e6},
		{From: 1, To: 2, At: 360e6, Waited: 200e6, Prepare: 50e6, Live: 40e6, Verify: 5e6},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

func TestAHandoffIsNeverLessThanNothing(t *testing.T) {
	var k chronicle
	busy := "0/1:serving waits=epoch_1_to_end"
	glances(&k, "0/1:serving", busy, busy, busy, busy, busy, "0/1:serving 1/2:starting", "0/1:draining 1/2:serving")
	if h := k.handoffs[1]; h.Prepare != 0 || h.Waited != 250*time.Millisecond {
		t.Errorf("%+v", h)
	}
}

func TestRefusals(t *testing.T) {
	line := func(ms int, message, raw, source string) node.Line {
		return node.Line{Time: noon.Add(time.Duration(ms) * time.Millisecond), Epoch: 4, Message: message, Raw: raw, Source: source}
	}
	got := refusals(noon, []node.Line{
		line(1, saysRefused, `{"step":"validate","error":"no such field"}`, ""),
		line(2, "cannot bind", "", "envoy"),
		line(3, saysTakenBack, `{"step":"start","error":"it ended"}`, ""),
		line(4, saysTakenBack, `it says so itself`, "envoy"),
		line(5, saysServes, "", ""),
		line(6, saysRefused, "not JSON", ""),
	})
	want := []report.Refusal{
		{At: 1e6, Epoch: 4, Step: "validate", Error: "no such field"},
		{At: 3e6, Epoch: 4, TakenBack: true, Step: "start", Error: "it ended: cannot bind"},
		{At: 6e6, Epoch: 4},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}
