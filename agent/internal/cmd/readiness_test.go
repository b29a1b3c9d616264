package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/coordination"
)

func TestTheDeprecatedReadinessCheckStillWorksAndWarns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	check := func(want int, says string) {
		t.Helper()
		w := newWorld()
		w.env["AETHER_READY_MARKER"] = path
		code := w.main([]string{"proxy-supervisor", "--readiness-check", "--drain-time", "9s", "--parent-shutdown-time", "9s"})
		if said := w.err.String(); code != want || w.ran != nil || w.out.Len() > 0 || !strings.Contains(said, says) || !strings.Contains(said, "deprecated") {
			t.Errorf("exit code %d: %s", code, said)
		}
	}
	check(1, "not ready: ready marker "+path+": no such file")
	m := coordination.NewMarker(path)
	if err := m.Publish(); err != nil {
		t.Fatal(err)
	}
	check(0, "use proxy-ready "+path)
	if err := m.Withdraw(); err != nil {
		t.Fatal(err)
	}
	check(1, "not ready")
}
