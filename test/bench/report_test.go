package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// samples are n equal ones.
func samples(n int, live, cpu time.Duration) []sample {
	all := make([]sample, n)
	for i := range all {
		all[i] = sample{Live: live, Committed: live, Supervisor: cpu}
	}
	return all
}

func measured(ours, cpu time.Duration, idle idleness) report {
	return newReport(machine{CPUs: 2}, options{rounds: 4, poll: time.Millisecond}, map[way][]sample{
		byHand: samples(4, 100*time.Millisecond, 0), byHandValidated: samples(4, 200*time.Millisecond, 0),
		hup: samples(4, ours, cpu), rename: samples(4, ours, cpu),
		hupValidated: samples(4, 2*ours, cpu), renameValidated: samples(4, 2*ours, cpu),
	}, idle)
}

func TestGoals(t *testing.T) {
	const ms = time.Millisecond
	good := idleness{Supervised: side{Supervisor: 0.2, Envoy: 1.5}, ByHand: side{Envoy: 1.45}, After: memory{RSS: 12 << 10}}
	fat := good
	fat.After.RSS = 17 << 10
	costly := good
	costly.Supervised.Envoy = 1.6
	for name, c := range map[string]struct {
		report report
		short  int
	}{
		"all met":                  {measured(109*ms, 3*ms, good), 0},
		"slow":                     {measured(120*ms, 3*ms, good), 4},
		"much CPU":                 {measured(105*ms, 5*ms, good), 4},
		"fat":                      {measured(105*ms, 3*ms, fat), 1},
		"a burden to its Envoy":    {measured(105*ms, 3*ms, costly), 1},
		"its Envoy uses even less": {measured(105*ms, 3*ms, idleness{Supervised: side{Supervisor: 0.25}, ByHand: side{Envoy: 1}, After: good.After}), 0},
	} {
		short := 0
		for _, v := range c.report.Verdicts {
			if !v.Met {
				short++
			}
		}
		if short != c.short || len(c.report.Verdicts) != 10 {
			t.Errorf("%s: %d of %d fall short, want %d of 10", name, short, len(c.report.Verdicts), c.short)
		}
	}
}

func TestReportIsPrintedAndSaved(t *testing.T) {
	r := measured(120*time.Millisecond, 3*time.Millisecond, idleness{})
	var text strings.Builder
	r.print(&text)
	for _, word := range []string{"SIGHUP → LIVE / by hand", "1.1 ×", "1.20", "1.20–1.20", "SHORT", "met", "120.0 / 120.0", "load average"} {
		if !strings.Contains(text.String(), word) {
			t.Errorf("no %q in\n%s", word, text.String())
		}
	}
	path := filepath.Join(t.TempDir(), "out", "bench.json")
	if err := r.save(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(data, &back); err != nil || back.Ways[hup].Live.Median != 120 || len(back.Verdicts) != 10 {
		t.Errorf("%v: %s", err, data)
	}
}
