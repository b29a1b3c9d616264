package cmd

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

var now = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// statuses are what status shows, from the emptiest to the fullest.
var statuses = map[string]control.Status{
	"starting": {
		Version: "1.2.3", PID: 1, Mode: control.ModeRelay, State: control.Starting, Serving: control.None, Concurrency: 4,
		ConfigPath: "/etc/envoy/envoy.yaml", EnvoyPath: "/usr/local/bin/envoy",
	},
	"serving": {
		Version: "1.2.3", PID: 1, BaseID: 7, Mode: control.ModePlain, State: control.Serving, Ready: true, Serving: 0, Concurrency: 4,
		ConfigPath: "/etc/envoy/envoy.yaml", EnvoyPath: "/usr/local/bin/envoy", AdminAddress: "127.0.0.1:9901",
		Epochs: []control.EpochStatus{{
			Epoch: 0, PID: 12, State: control.Serving, StartedAt: ago(50 * time.Hour), AgeSeconds: 180000,
			TimeLeftSeconds: control.None, Connections: 12345, EnvoyVersion: "1.40.0", HotRestartVersion: "11.104",
			ConfigHash: "3fa9c1d2e4b5", BinaryHash: "77aa88bb99cc",
		}},
		LastHandoff: &control.HandoffStatus{At: ago(50 * time.Hour), From: control.None, To: 0, Milliseconds: control.StepTimes{Prepare: 51.2, Live: 120.3, Verify: 2.1}},
	},
	"busy": {
		Version: "1.2.3", PID: 4711, BaseID: 7, Mode: control.ModeRelay, State: control.Preparing, Ready: true, Serving: 11, Concurrency: 4,
		ConfigPath: "/etc/envoy/envoy.yaml", EnvoyPath: "/usr/local/bin/envoy", AdminAddress: "unix:/run/admin.sock",
		Relay: true, SegmentRepair: true, SegmentRepairs: 2,
		Upgrades: 1, LastUpgrade: &control.UpgradeStatus{At: ago(5 * time.Minute), From: "1.2.3", To: "1.3.0", Error: "a child has just ended"},
		Epochs: []control.EpochStatus{
			{Epoch: 9, PID: 90, State: control.Draining, AgeSeconds: 7300, TimeLeftSeconds: 62.5, Connections: 3, EnvoyVersion: "1.39.3", ConfigHash: "aaaaaaaaaaaa", BinaryHash: "bbbbbbbbbbbb"},
			{Epoch: 10, PID: 100, State: control.Ending, AgeSeconds: 600, TimeLeftSeconds: 0, Connections: 0, EnvoyVersion: "1.40.0", ConfigHash: "cccccccccccc", BinaryHash: "dddddddddddd"},
			{Epoch: 11, PID: 110, State: control.Serving, AgeSeconds: 61, TimeLeftSeconds: control.None, Connections: 120, EnvoyVersion: "1.40.0", ConfigHash: "eeeeeeeeeeee", BinaryHash: "dddddddddddd"},
			{Epoch: 12, PID: 120, State: control.Starting, AgeSeconds: 0.07, TimeLeftSeconds: control.None, Connections: control.None},
		},
		Pending:     &control.PendingStatus{Triggers: []string{"config", "signal"}, Force: true, Since: ago(3200 * time.Millisecond), WaitsFor: "epoch 12 to be committed"},
		LastHandoff: &control.HandoffStatus{At: ago(time.Minute), From: 10, To: 11, Milliseconds: control.StepTimes{Prepare: 51.2, Live: 120.3, Verify: 2.1}},
		LastFailure: &control.FailureStatus{At: ago(90 * time.Minute), Epoch: 11, Step: "verify", Error: "epoch 11: not verified after 2m0s: listener \"ingress\" is not active",
			Log: []string{"[info] starting main dispatch loop", "[warning] gRPC config stream closed"}},
	},
}

func TestStatusOutput(t *testing.T) {
	for name, st := range statuses {
		var table, json bytes.Buffer
		if err := writeTable(&table, st, now); err != nil {
			t.Error(err)
		}
		golden(t, "status/"+name+".txt", table.String())
		if err := writeJSON(&json, st, now); err != nil {
			t.Error(err)
		}
		golden(t, "status/"+name+".json", json.String())
	}
}

// histories are what history shows.
var histories = map[string]control.History{
	"none": {},
	"all": {Handoffs: []control.TryStatus{
		{HandoffStatus: control.HandoffStatus{At: ago(3 * time.Second), From: 4, To: 5, Milliseconds: control.StepTimes{Prepare: 51.2, Live: 120.3}},
			Outcome: control.Failed, Triggers: []string{"config", "signal"}, Step: "handoff deadline", Error: "LIVE, but not verified after 2m0s; missing: listener a", DurationMS: 120171.5},
		{HandoffStatus: control.HandoffStatus{At: ago(time.Minute), From: 4, To: 5},
			Outcome: control.Refused, Triggers: []string{"config"}, Step: "validate", Error: strings.Repeat("é", 200) + "\nmore", DurationMS: 48},
		{HandoffStatus: control.HandoffStatus{At: ago(time.Hour), From: 3, To: 4, Milliseconds: control.StepTimes{Prepare: 51.2, Live: 120.3, Verify: 2.1}},
			Outcome: control.Committed, Triggers: []string{"reload"}, Forced: []string{"cluster b", "cluster c"}, DurationMS: 173.6},
		{HandoffStatus: control.HandoffStatus{At: ago(50 * time.Hour), From: control.None, To: 0, Milliseconds: control.StepTimes{Prepare: 51.2, Live: 120.3, Verify: 2.1}},
			Outcome: control.Committed, Triggers: []string{"start"}, DurationMS: 173.6},
	}},
}

func TestHistoryOutput(t *testing.T) {
	for name, h := range histories {
		var table, json bytes.Buffer
		if err := errors.Join(writeHistory(&table, h, now), writeIndented(&json, h)); err != nil {
			t.Error(err)
		}
		golden(t, "history/"+name+".txt", table.String())
		golden(t, "history/"+name+".json", json.String())
	}
}

// diagnosis has one finding of each kind.
var diagnosis = control.Diagnosis{Findings: []control.Finding{
	{Check: "base-id", OK: true, Found: "nobody else answers for base-id 7"},
	{Check: "config mount", Found: "/etc/envoy/envoy.yaml is a mount of its own (a subPath): it will never change", Do: "mount its directory, without subPath"},
}}

func TestDiagnosisOutput(t *testing.T) {
	var text, json bytes.Buffer
	if err := errors.Join(writeDiagnosis(&text, diagnosis), writeIndented(&json, diagnosis)); err != nil {
		t.Error(err)
	}
	golden(t, "doctor/diagnosis.txt", text.String())
	golden(t, "doctor/diagnosis.json", json.String())
}

func TestAge(t *testing.T) {
	for in, want := range map[time.Duration]string{
		-time.Second: "0.0s", 70 * time.Millisecond: "0.0s", 9990 * time.Millisecond: "9.9s", 10 * time.Second: "10s",
		59 * time.Second: "59s", time.Minute: "1m", 61 * time.Second: "1m1s", time.Hour: "1h", 3601 * time.Second: "1h",
		3*time.Hour + 5*time.Minute: "3h5m", 24 * time.Hour: "1d0h", 50 * time.Hour: "2d2h",
	} {
		if got := age(in); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}
