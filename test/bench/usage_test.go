package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestCPUOf(t *testing.T) {
	before, err := cpuOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for start := time.Now(); time.Since(start) < 20*time.Millisecond; {
	}
	after, err := cpuOf(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%v, then %v: %v", before, after, err)
	}
	if _, err := cpuOf(1<<22 + 1); err == nil {
		t.Error("no error for a process that isn't there")
	}
}

func TestParseMemory(t *testing.T) {
	got := parseMemory("Name:\tagent\nVmHWM:\t   17000 kB\nVmRSS:\t   16628 kB\nRssAnon:\t    7648 kB\nRssFile:\t    8980 kB\n")
	if want := (memory{RSS: 16628, Anon: 7648, File: 8980, Peak: 17000}); got != want {
		t.Errorf("%+v", got)
	}
	if memoryOf(os.Getpid()).RSS == 0 {
		t.Error("we have no memory")
	}
}

func TestParseInfo(t *testing.T) {
	const head = `{ "version": "x", "state": "LIVE", "command_line_options": {"restart_epoch": 3, "mode": "Serve"}, "node": `
	got, err := parseInfo(strings.NewReader(head + strings.Repeat("x", 1<<20)))
	if err != nil || got != (serverInfo{State: "LIVE", Epoch: 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := parseInfo(strings.NewReader(`{"status": "ok"}`)); err == nil {
		t.Error("another server's answer was taken")
	}
}

func TestMachine(t *testing.T) {
	if got := parseLoad("0.52 0.58 0.59 1/467 12345\n"); got != (loads{0.52, 0.58, 0.59}) {
		t.Error(got)
	}
	if got := cpuModel("processor\t: 0\nmodel name\t: Some CPU @ 2GHz\n"); got != "Some CPU @ 2GHz" {
		t.Error(got)
	}
	busy := machine{CPUs: 2, Before: loads{3}}.String()
	quiet := machine{CPUs: 2, Before: loads{0.3}}.String()
	if !strings.Contains(busy, "quiet machine is wanted") || strings.Contains(quiet, "wanted") {
		t.Errorf("%s\n%s", busy, quiet)
	}
}

func TestOptionsThatMeasureNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "1"}, {"-idle", "1ms"}, {"-poll", "0"}, {"-warmup", "-1"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
	if o, err := parse(nil); err != nil || o.rounds != 30 || o.idle != 20*time.Second || o.poll != 2*time.Millisecond {
		t.Errorf("%+v, %v", o, err)
	}
}
