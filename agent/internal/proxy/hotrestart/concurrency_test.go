package hotrestart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRule5ConcurrencyIsPinned(t *testing.T) {
	for _, c := range []struct{ flag, extra, want int }{{4, 0, 4}, {0, 3, 3}, {2, 2, 2}} {
		if got, err := pinConcurrency(c.flag, c.extra); got != c.want || err != nil {
			t.Errorf("flag %d, extra %d: %d, %v", c.flag, c.extra, got, err)
		}
	}
	if _, err := pinConcurrency(2, 3); err == nil || !strings.Contains(err.Error(), "--concurrency") {
		t.Errorf("a contradiction: %v", err)
	}
	if n, err := pinConcurrency(0, 0); n < 1 || err != nil {
		t.Errorf("default: %d, %v", n, err)
	}
}

func TestCgroupLimitIsRoundedUp(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  float64
		ok    bool
	}{
		"none":         {nil, 0, false},
		"v2 max":       {map[string]string{"cpu.max": "max 100000\n"}, 0, false},
		"v2 1.5":       {map[string]string{"cpu.max": "150000 100000\n"}, 1.5, true},
		"v1 unlimited": {map[string]string{"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 0, false},
		"v1 0.2":       {map[string]string{"cpu/cpu.cfs_quota_us": "20000", "cpu/cpu.cfs_period_us": "100000"}, 0.2, true},
		"garbage":      {map[string]string{"cpu.max": "a b"}, 0, false},
	} {
		root := t.TempDir()
		for file, text := range c.files {
			path := filepath.Join(root, "sys/fs/cgroup", file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, ok := cgroupCPUs(root); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %t", name, got, ok)
		}
		if n := usableCPUs(root); n < 1 || c.ok && c.want < 1 && n != 1 {
			t.Errorf("%s: %d CPUs", name, n)
		}
	}
}
