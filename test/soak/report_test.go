package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

func goodReport() *report {
	return &report{
		Handoffs: 1000, Wanted: 1000, Seconds: 1000, Young: 22, Old: 24,
		Load:     load.Report{Kinds: []load.KindReport{{Kind: load.New, Started: 10, OK: 10}}},
		Verdicts: []verdict{{Name: "descriptors", Before: 17, After: 18, Allowed: 2}},
	}
}

func TestEachReasonFailsTheRun(t *testing.T) {
	if err := goodReport().failure(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*report){
		"descriptors grew from 17 to 18":       func(r *report) { r.Verdicts[0].Failed = true },
		"only 999 of 1000 handoffs":            func(r *report) { r.Handoffs = 999 },
		"29 goroutines at the end, and 22":     func(r *report) { r.Old = 29 },
		"1 of 10 operations failed":            func(r *report) { r.Load.Kinds[0].Failed = 1 },
		"the load was harmed: 0 of 10":         func(r *report) { r.Load.Kinds[0].OK = 0 },
		"0 samples are too few to judge; 8 ar": func(r *report) { _, r.judgeError = judgeAll(nil) },
	} {
		r := goodReport()
		spoil(r)
		if err := r.failure(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestReportIsPrintedAndWritten(t *testing.T) {
	r := goodReport()
	r.Verdicts = append(r.Verdicts, verdict{Name: "zombies", Most: 1, Failed: true})
	r.Complaints = map[string]int{"relay: send failed": 3}
	r.log = "line\n"
	var b bytes.Buffer
	r.print(&b)
	for _, want := range []string{"1000 handoffs in 1000 s (1.00 a second)", "10 operations, 0 failures", "ok descriptors", "FAIL zombies", "3 times: relay: send failed"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	path := filepath.Join(t.TempDir(), "out", "soak.json")
	if err := r.write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	var back report
	if err != nil || json.Unmarshal(data, &back) != nil || back.Handoffs != 1000 || len(back.Verdicts) != 2 {
		t.Errorf("%v %s", err, data)
	}
	if log, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".log"); string(log) != "line\n" {
		t.Error(err)
	}
}

func TestWhatTheLogTells(t *testing.T) {
	lines := []node.Line{
		{Raw: "SIGQUIT: quit"}, {Raw: "goroutine 0 gp=0x1 m=0 mp=0x2 [idle]:"}, {Raw: "goroutine 1 [select]:"},
		{Raw: "goroutine 17 [syscall, 5 minutes, locked to thread]:"}, {Raw: "	goroutine 1 [of a message]"},
		{Level: "WARN", Message: "a"}, {Level: "ERROR", Message: "a"}, {Level: "INFO", Message: "b"},
		{Level: "WARN", Message: "Envoy's own", Source: "envoy"},
	}
	if n := countGoroutines(lines); n != 3 {
		t.Error(n, "goroutines")
	}
	if c := complaints(lines); len(c) != 1 || c["a"] != 2 {
		t.Error(c)
	}
}

func TestFlags(t *testing.T) {
	var usage bytes.Buffer
	if o, err := parse(nil, &usage); err != nil || o.handoffs != 1000 || o.every != 10 || o.rate != 100 {
		t.Errorf("%+v, %v", o, err)
	}
	for _, args := range [][]string{{"-n", "79"}, {"-every", "0"}, {"-rate", "0"}, {"x"}, {"-n", "many"}} {
		if _, err := parse(args, &usage); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

// The plan's rate is what was asked for, and every kind has its part.
func TestPlan(t *testing.T) {
	p := plan(load.Target{}, 50)
	kinds, rate := map[string]bool{}, 0.0
	for _, k := range p.Kinds {
		kinds[k.Kind] = true
		rate += k.Rate
	}
	if rate != 50 || len(kinds) != 9 {
		t.Errorf("%g operations a second of %d kinds", rate, len(kinds))
	}
}
