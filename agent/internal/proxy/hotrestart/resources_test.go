package hotrestart

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

func TestFact25TooFewOpenFilesAreRefusedBeforehand(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := &input{boot: envoy.Bootstrap{Listeners: make([]envoy.Listener, 3)}}
	if r := checkFiles(few, nil, 2); r != nil {
		t.Errorf("106 files of %d: %+v", limit.Cur, r)
	}
	dynamic := &envoy.Resources{DynamicListeners: make([]envoy.Resource, int(limit.Cur)/2)}
	r := checkFiles(few, dynamic, 2)
	if r == nil || !strings.Contains(r.Text, strconv.FormatUint(limit.Cur, 10)) {
		t.Errorf("%+v", r)
	}
}

func TestMemoryHeadroomIsToldBeforehand(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		warns bool
	}{
		"no limit":   {map[string]string{"sys/fs/cgroup/memory.max": "max", "sys/fs/cgroup/memory.current": "1"}, false},
		"enough":     {map[string]string{"sys/fs/cgroup/memory.max": "1073741824", "sys/fs/cgroup/memory.current": "104857600"}, false},
		"too little": {map[string]string{"sys/fs/cgroup/memory.max": "157286400", "sys/fs/cgroup/memory.current": "104857600"}, true},
		"v1":         {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "157286400", "sys/fs/cgroup/memory/memory.usage_in_bytes": "157286400"}, true},
		"v1, none":   {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712", "sys/fs/cgroup/memory/memory.usage_in_bytes": "1"}, false},
		"nothing":    {nil, false},
	} {
		root := t.TempDir()
		c.files = mergedWith(c.files, "proc/7/status", "Name:\tenvoy\nRssAnon:\t   81920 kB\nRssFile:\t 1 kB")
		for file, text := range c.files {
			path := filepath.Join(root, file)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := headroom(root, 7); (got != "") != c.warns || c.warns && !strings.Contains(got, "80 MiB") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func mergedWith(files map[string]string, name, text string) map[string]string {
	all := map[string]string{name: text}
	for k, v := range files {
		all[k] = v
	}
	return all
}

func TestFact26TheKernelIsToldWhomToEnd(t *testing.T) {
	p, err := process.Start(process.Spec{Path: "/bin/sleep", Args: []string{"60"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Signal(syscall.SIGKILL); p.Wait() }()
	score := func() int {
		n, err := strconv.Atoi(readTrimmed("/", "proc/"+strconv.Itoa(p.Pid())+"/oom_score_adj"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	own := score()
	if err := setVictim(p.Pid(), true); err != nil || score() != min(own+victim, 1000) {
		t.Errorf("marked: %d, %v", score(), err)
	}
	if err := setVictim(p.Pid(), false); err != nil || score() != own {
		t.Errorf("unmarked: %d, %v", score(), err)
	}
}

func TestAFullOrForeignSharedMemoryIsNamed(t *testing.T) {
	if err := checkRoom(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := checkRoom("/nonexistent"); err == nil {
		t.Error("no such directory")
	}
	if os.Geteuid() != 0 {
		t.Skip("a full tmpfs needs root to mount")
	}
	full := t.TempDir()
	if err := syscall.Mount("tmpfs", full, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("mount: %v", err)
	}
	defer syscall.Unmount(full, 0)
	if err := checkRoom(full); err == nil || !strings.Contains(err.Error(), "is full") {
		t.Errorf("a full one: %v", err)
	}
}
