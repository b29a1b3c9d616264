package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/drain"
	"aether.internal/agent/internal/proxy/process"
)

// beWaiter makes this test binary the waiter.
const beWaiter = "TEST_BE_WAITER"

func TestMain(m *testing.M) {
	if os.Getenv(beWaiter) != "" {
		main()
	}
	process.Main(m.Run)
}

// waiter starts the waiter as a process of its own.
func waiter(t *testing.T, args ...string) *process.Process {
	t.Helper()
	p, err := process.Start(process.Spec{
		Path: os.Args[0], Args: args, Stderr: os.Stderr, Env: append(os.Environ(), beWaiter+"=1"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Signal(9); p.Wait() })
	return p
}

func TestItWaitsForTheMarker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain-complete")
	m := drain.NewMarker(path)
	p := waiter(t, "--deadline", "50s", path)
	for !m.Awaited() {
		select {
		case <-p.Done():
			t.Fatalf("it has ended: %v", p.Wait())
		default:
		}
	}
	if err := m.Write(); err != nil {
		t.Fatal(err)
	}
	if st := p.Wait(); st.Code != isDrained {
		t.Error(st)
	}
}

func TestTheDeadline(t *testing.T) {
	if st := waiter(t, "--deadline", "50ms", filepath.Join(t.TempDir(), "m")).Wait(); st.Code != isLate {
		t.Error(st)
	}
}

// A waiter that dies is not taken for one that waits.
func TestADeadWaiterWaitsNoMore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain-complete")
	m := drain.NewMarker(path)
	p := waiter(t, path)
	for !m.Awaited() {
		select {
		case <-p.Done():
			t.Fatalf("it has ended: %v", p.Wait())
		default:
		}
	}
	if err := p.Signal(9); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if m.Awaited() {
		t.Error("still awaited")
	}
}

func TestUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{"--version"}, isDrained, "devel"},
		{[]string{"--help"}, isUsage, "usage"},
		{[]string{"a", "b"}, isUsage, "usage"},
		{[]string{""}, isUsage, "usage"},
		{[]string{"--deadline"}, isUsage, "usage"},
		{[]string{"--deadline", "5"}, isUsage, "want a duration"},
		{[]string{"--deadline", "-5s", "m"}, isUsage, "want a duration"},
		{[]string{"--deadline", "1ms", t.TempDir()}, isLate, "not over by the deadline (1ms)"},
	} {
		if code, said := run(c.args, func(string) {}); code != c.code || !strings.Contains(said, c.said) {
			t.Errorf("%q: exit code %d, %q", c.args, code, said)
		}
	}
}
