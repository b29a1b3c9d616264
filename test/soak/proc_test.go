package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

func TestProcessIsReadFromTheKernel(t *testing.T) {
	before, err := readProcess(os.Getpid())
	if err != nil || before.RSS < before.Anon || before.Anon == 0 || before.Threads == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// At least: the first socket makes the runtime open its poller.
	after, err := readProcess(os.Getpid())
	if err != nil || after.Descriptors < before.Descriptors+2 || after.Sockets != before.Sockets+1 {
		t.Errorf("%+v after %+v, %v", after, before, err)
	}
	if _, err := readProcess(-1); err == nil {
		t.Error("process -1 was read")
	}
}

func TestZombiesAreCounted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "unusual")
	if err := os.WriteFile(script, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("tail", "-f", script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := os.Getpid()
	await(t, "a living child", func() bool { f, _ := children(pid); return f == family{Living: 1} })
	await(t, "its arguments", func() bool { n, _ := mentioning(script); return n == 1 })
	cmd.Process.Kill()
	await(t, "a zombie", func() bool { f, _ := children(pid); return f == family{Zombies: 1} })
	if n, err := mentioning(script); n != 0 || err != nil {
		t.Error(n, err)
	}
	cmd.Wait()
	if f, err := children(pid); f != (family{}) || err != nil {
		t.Error(f, err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatal("no ", what)
		}
		<-time.After(time.Millisecond)
	}
}

func TestStatLines(t *testing.T) {
	for stat, want := range map[string]struct {
		state  string
		parent int
	}{
		"12 (envoy) S 7 1 1 0":   {"S", 7},
		"12 (a ) Z 9 b) Z 8 1 1": {"Z", 8}, // a name may be anything
		"12 (cut":                {"", 0},
		"":                       {"", 0},
	} {
		if state, parent := stateAndParent(stat); state != want.state || parent != want.parent {
			t.Errorf("%q: %s %d", stat, state, parent)
		}
	}
	if n, err := statusField("VmRSS:\t   1234 kB\nThreads:\t5\n", "VmRSS"); n != 1234 || err != nil {
		t.Error(n, err)
	}
	if _, err := statusField("Threads:\t5\n", "VmRSS"); err == nil {
		t.Error("a field that isn't there")
	}
}

func TestFilesAreCounted(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700)
	os.WriteFile(filepath.Join(dir, "a", "x_12"), nil, 0o600)
	os.Symlink("nowhere", filepath.Join(dir, "a", "b", "link"))
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n, err := filesBelow(dir); n != 3 || err != nil {
		t.Error(n, err)
	}
	if n, err := filesNamed(filepath.Join(dir, "a"), "_12"); n != 1 || err != nil {
		t.Error(n, err)
	}
	if _, err := filesNamed(filepath.Join(dir, "absent"), ""); err == nil {
		t.Error("a directory that isn't there")
	}
}
