package cmd

import (
	"os"
	"strings"
	"testing"
	"time"
)

// The systemd unit runs: its command line is one that we take, and its timers
// leave room for ours.
func TestTheSystemdUnit(t *testing.T) {
	data, err := os.ReadFile(docs + "systemd/envoy.service")
	if err != nil {
		t.Fatal(err)
	}
	unit := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			unit[key] = value
		}
	}
	for key, want := range map[string]string{"Type": "notify-reload", "NotifyAccess": "main", "KillMode": "mixed", "RestartPreventExitStatus": "2 3 4 6"} {
		if unit[key] != want {
			t.Errorf("%s=%s, want %s", key, unit[key], want)
		}
	}
	if unit["ExecReload"] != "" {
		t.Error("ExecReload= beside notify-reload makes two handoffs of one reload")
	}
	line := strings.Fields(unit["ExecStart"])
	if len(line) < 2 || line[0] != "/usr/local/bin/agent" {
		t.Fatalf("ExecStart=%s", unit["ExecStart"])
	}
	w := newWorld()
	if code := w.main(line[1:]); code != 0 || w.ran == nil {
		t.Fatalf("ExecStart: exit code %d: %s", code, w.err.String())
	}
	stop := unitSeconds(t, unit["TimeoutStopSec"])
	if need := w.ran.ParentShutdownTime + 10*time.Second; stop < need || stop != w.ran.GracePeriod {
		t.Errorf("TimeoutStopSec is %v, a stop takes up to %v, and the doctor is told %v", stop, need, w.ran.GracePeriod)
	}
	if start := unitSeconds(t, unit["TimeoutStartSec"]); start <= w.ran.HandoffDeadline {
		t.Errorf("TimeoutStartSec is %v, a first start may take %v", start, w.ran.HandoffDeadline)
	}
	for _, dir := range []string{w.ran.StateDir, w.ran.ReadyMarkerPath, w.ran.ControlSocket} {
		found := false
		for _, own := range strings.Fields(unit["RuntimeDirectory"]) {
			found = found || strings.HasPrefix(strings.TrimPrefix(strings.TrimPrefix(dir, "/var"), "/run/")+"/", own+"/")
		}
		if !found {
			t.Errorf("%s is in no RuntimeDirectory=", dir)
		}
	}
	tasks, err := os.ReadFile(docs + "tasks.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(tasks), "```ini\n"+string(data)+"```") {
		t.Error("docs/tasks.md shows another unit")
	}
}

func unitSeconds(t *testing.T, value string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(value + "s")
	if err != nil {
		t.Fatal(err)
	}
	return d
}
