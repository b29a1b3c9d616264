package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/coordination/marker"
	"aether.internal/agent/internal/proxy/coordination/marker/fresh"
	"aether.internal/agent/internal/proxy/process"
)

// beProbe makes this test binary the probe.
const beProbe = "TEST_BE_PROBE"

func TestMain(m *testing.M) {
	if os.Getenv(beProbe) != "" {
		main()
	}
	process.Main(m.Run)
}

// probe runs the probe as a process of its own.
func probe(t *testing.T, args ...string) int {
	t.Helper()
	st, err := process.Run(t.Context(), process.Spec{
		Path: os.Args[0], Args: args, Env: append(os.Environ(), beProbe+"=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return st.Code
}

func TestRule13TheProbeSaysWhatTheMarkerIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	if code := probe(t, path); code != 1 {
		t.Errorf("nothing there: exit code %d", code)
	}
	m := marker.New(path)
	if err := m.Publish(); err != nil {
		t.Fatal(err)
	}
	if code := probe(t, path); code != 0 {
		t.Errorf("published: exit code %d", code)
	}
	if err := m.Withdraw(); err != nil {
		t.Fatal(err)
	}
	if code := probe(t, path); code != 1 {
		t.Errorf("withdrawn: exit code %d", code)
	}
}

func TestWhatIsNoMarkerExits1(t *testing.T) {
	dir := t.TempDir()
	for name, put := range map[string]func(string) error{
		"unlocked":      func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"FIFO":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
	} {
		path := filepath.Join(dir, name)
		if err := put(path); err != nil {
			t.Fatal(err)
		}
		if code := probe(t, path); code != 1 {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}

func TestUsageAndVersion(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		said string
	}{
		{nil, 2, "usage"},
		{[]string{""}, 2, "usage"},
		{[]string{"a", "b"}, 2, "usage"},
		{[]string{"--help"}, 2, "usage"},
		{[]string{"--version"}, 0, "proxy-ready devel"},
	} {
		if code, said := run(c.args, fresh.Check, deadline, nil); code != c.code || !strings.Contains(said, c.said) {
			t.Errorf("%q: exit code %d, %q", c.args, code, said)
		}
	}
}

func TestAFileSystemThatHangsIsGivenUp(t *testing.T) {
	gaveUp := make(chan struct{})
	hangs := func(string) error { <-gaveUp; return nil }
	run([]string{"/x/ready"}, hangs, time.Millisecond, func() { close(gaveUp) })
}
