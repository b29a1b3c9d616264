package hotrestart

import (
	"bytes"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the kernel says of limits is a plausible number or none.
func FuzzLimits(f *testing.F) {
	f.Add("200000 100000", "-1", "max")
	f.Add("max 100000", "9223372036854771712", "1048576\n")
	f.Add("", "50000", "")
	f.Add("NaN 1", "Inf", "1e3")
	f.Add("1 0", "-0", "18446744073709551616")
	root := f.TempDir()
	for _, dir := range []string{"sys/fs/cgroup/cpu", "proc/7"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			f.Fatal(err)
		}
	}
	most := usableCPUs(f.TempDir()) // no limit there
	f.Fuzz(func(t *testing.T, cpu, quota, memory string) {
		for name, text := range map[string]string{
			"sys/fs/cgroup/cpu.max": cpu, "sys/fs/cgroup/cpu/cpu.cfs_quota_us": quota, "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
			"sys/fs/cgroup/memory.max": memory, "sys/fs/cgroup/memory.current": quota, "proc/7/status": "Name:\tenvoy\nRssAnon:\t" + memory + " kB\n",
		} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if limit, ok := cgroupCPUs(root); ok && !(limit > 0 && limit <= math.MaxFloat64) || !ok && limit != 0 {
			t.Errorf("%q, %q: a limit of %v CPUs, %t", cpu, quota, limit, ok)
		}
		if n := usableCPUs(root); n < 1 || n > most {
			t.Errorf("%q, %q: %d of %d CPUs", cpu, quota, n, most)
		}
		if limit, used, ok := cgroupMemory(root); !ok && limit+used != 0 || limit >= 1<<60 {
			t.Errorf("%q, %q: memory %d of %d, %t", memory, quota, used, limit, ok)
		}
		if bytes := residentBytes(root, 7); bytes >= 1<<60 {
			t.Errorf("%q: %d bytes resident", memory, bytes)
		}
		headroom(root, 7)
	})
}

// An epoch's stderr is read to its end, whatever it is, and little of it kept.
func FuzzTail(f *testing.F) {
	f.Add([]byte("one\ntwo\r\nthree"))
	f.Add([]byte(strings.Repeat("x", 3*lineBytes) + "\n"))
	f.Add([]byte(strings.Repeat("\n", 2*tailLines)))
	f.Add([]byte("\x00\xff\n"))
	f.Fuzz(func(t *testing.T, stderr []byte) {
		tail := newTail(slog.New(slog.DiscardHandler), 1)
		tail.read(io.NopCloser(bytes.NewReader(stderr)))
		lines := tail.lines()
		if len(lines) > tailLines {
			t.Errorf("%d lines are kept", len(lines))
		}
		size := 0
		for _, line := range lines {
			size += len(line)
			if len(line) > lineBytes || strings.Contains(line, "\n") {
				t.Errorf("a line of %d bytes: %.100q", len(line), line)
			}
		}
		if size > len(stderr) || !bytes.HasSuffix(bytes.TrimRight(stderr, "\r\n"), []byte(strings.TrimRight(last(lines), "\r"))) {
			t.Errorf("%q became %q", stderr, lines)
		}
	})
}

func last(lines []string) string {
	for i := len(lines) - 1; i >= 0; i-- {
		if lines[i] != "" {
			return lines[i]
		}
	}
	return ""
}
