package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// budgets are what a binary may weigh, stripped: each node pulls it, and a probe
// or an init container copies it.
var budgets = map[string]int64{
	"agent": 15_000_000, // with the OTLP exporters; 8.5 MB without
}

func TestBinariesKeepToTheirBudgets(t *testing.T) {
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "make", "-C", root, "build", "BIN="+dir+"/", "VERSION=v0.0.0-size")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("make build: %v\n%s", err, out)
	}
	for name, budget := range budgets {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes of %d", name, info.Size(), budget)
		if info.Size() > budget {
			t.Errorf("%s weighs %d bytes, its budget is %d: what came with the last change? (go list -deps, go tool nm -size)", name, info.Size(), budget)
		}
	}
}
