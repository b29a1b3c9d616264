package marker

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"aether.internal/agent/internal/proxy/coordination/marker/fresh"
	"aether.internal/agent/internal/proxy/process"
)

// A child with childPath set publishes there, says so and waits for its end.
const childPath = "AETHER_TEST_MARKER"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		fmt.Println("published:", New(path).Publish())
		select {}
	}
	process.Main(m.Run)
}

func publish(t *testing.T, m *Marker) {
	t.Helper()
	if err := m.Publish(); err != nil {
		t.Fatal(err)
	}
	if err := Fresh(m.path); err != nil {
		t.Fatalf("published, but: %v", err)
	}
}

func withdraw(t *testing.T, m *Marker) {
	t.Helper()
	if err := m.Withdraw(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(m.path))
	if err != nil || len(entries) > 0 {
		t.Fatalf("left behind: %v, %v", entries, err)
	}
}

func TestMarkerIsFreshFromPublishToWithdraw(t *testing.T) {
	m := New(filepath.Join(t.TempDir(), "run", "ready"))
	if err := Fresh(m.path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	for range 2 {
		publish(t, m)
		before, _ := os.Stat(m.path)
		publish(t, m) // once more changes nothing
		if after, _ := os.Stat(m.path); !os.SameFile(before, after) {
			t.Error("a second Publish replaced the file")
		}
		withdraw(t, m)
		withdraw(t, m)
	}
	if fi, err := os.Stat(filepath.Dir(m.path)); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", fi, err)
	}
}

func TestPublishPutsBackWhatSomebodyRemoved(t *testing.T) {
	m := New(filepath.Join(t.TempDir(), "ready"))
	publish(t, m)
	os.Remove(m.path)
	publish(t, m)
	os.WriteFile(m.path+".new", nil, 0o600)
	os.Rename(m.path+".new", m.path)
	if err := Fresh(m.path); !errors.Is(err, fresh.ErrStale) {
		t.Errorf("somebody else's file: %v", err)
	}
	publish(t, m)
	withdraw(t, m)
}

// Rule 13: a crash can't leave a fresh marker behind.
func TestRule13MarkerEndsWithItsWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	child := startWriter(t, path)
	if err := Fresh(path); err != nil {
		t.Error(err)
	}
	if err := New(path).Publish(); !errors.Is(err, ErrHeld) || !strings.Contains(err.Error(), path) {
		t.Errorf("over a living writer's marker: %v", err)
	}
	if err := New(path).Withdraw(); err != nil {
		t.Error(err)
	}
	if err := Fresh(path); err != nil {
		t.Errorf("another's marker was withdrawn: %v", err)
	}
	if err := child.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	if err := Fresh(path); !errors.Is(err, fresh.ErrStale) {
		t.Errorf("after SIGKILL of the writer: %v", err)
	}
	m := New(path)
	publish(t, m)
	withdraw(t, m)
}

func startWriter(t *testing.T, path string) *process.Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	child, err := process.Start(process.Spec{Path: self, Env: append(os.Environ(), childPath+"="+path), Stdout: w})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Signal(syscall.SIGKILL); child.Wait() })
	if line, err := bufio.NewReader(r).ReadString('\n'); line != "published: <nil>\n" {
		t.Fatalf("the writer said %q, %v", line, err)
	}
	return child
}

func TestStaleMarkerIsWithdrawnByTheNextSupervisor(t *testing.T) {
	m := New(filepath.Join(t.TempDir(), "ready"))
	os.WriteFile(m.path, []byte("from another time"), 0o644)
	withdraw(t, m)
}

func TestAnotherProbeIsNoWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	os.WriteFile(path, nil, 0o600)
	probe, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	if err := syscall.Flock(int(probe.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if err := Fresh(path); !errors.Is(err, fresh.ErrStale) {
		t.Errorf("while another probe looks: %v", err)
	}
}

func TestAReaderNeverSeesAMarkerWithoutItsLock(t *testing.T) {
	dir := t.TempDir()
	for n := range 200 {
		m := New(filepath.Join(dir, strconv.Itoa(n)))
		seen := make(chan error)
		go func() { // received from below
			err := Fresh(m.path)
			for errors.Is(err, fs.ErrNotExist) {
				err = Fresh(m.path)
			}
			seen <- err
		}()
		if err := m.Publish(); err != nil {
			t.Fatal(err)
		}
		if err := <-seen; err != nil {
			t.Fatal(err)
		}
		m.Withdraw()
	}
}

func TestWhatIsNoMarkerIsNeitherFreshNorReplaced(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"FIFO":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"link":          func(p string) error { return os.Symlink("/dev/null", p) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
		"device":        func(p string) error { return syscall.Mknod(p, syscall.S_IFCHR|0o600, 1<<8|3) },
	} {
		t.Run(name, func(t *testing.T) {
			m := New(filepath.Join(t.TempDir(), "ready"))
			if err := put(m.path); errors.Is(err, os.ErrPermission) {
				t.Skip("needs root: ", err)
			} else if err != nil {
				t.Fatal(err)
			}
			if err := Fresh(m.path); err == nil {
				t.Error("it is fresh")
			}
			if err := m.Publish(); err == nil || !strings.Contains(err.Error(), m.path) {
				t.Errorf("published: %v", err)
			}
			if err := m.Withdraw(); err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(m.path); err != nil {
				t.Errorf("it was removed: %v", err)
			}
		})
	}
}

func TestPublishBelowAFileFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if err := New(filepath.Join(file, "ready")).Publish(); err == nil || !strings.Contains(err.Error(), file) {
		t.Error(err)
	}
}
