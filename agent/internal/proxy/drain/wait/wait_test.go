package wait

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet(t *testing.T) func(string) { return func(said string) { t.Error(said) } }

// begin waits in the background, and returns when the waiter has its lock: it
// watches by then.
func begin(t *testing.T, marker string, say func(string)) chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- For(marker, 20*time.Second, say) }() // joined by its reader
	return done
}

func announced(t *testing.T, marker string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		f, err := os.Open(Announcement(marker))
		if err == nil {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			f.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no waiter announced itself")
		}
	}
}

func ends(t *testing.T, done chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("it waits on")
	}
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheMarkerIsThereAlready(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "m")
	put(t, marker)
	if err := For(marker, 0, quiet(t)); err != nil {
		t.Error(err)
	}
}

func TestCreatedOrRenamed(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, marker string){
		"created": put,
		"renamed": func(t *testing.T, marker string) {
			put(t, marker+".tmp")
			if err := os.Rename(marker+".tmp", marker); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			marker := filepath.Join(t.TempDir(), "m")
			done := begin(t, marker, quiet(t))
			announced(t, marker)
			put(t, filepath.Join(filepath.Dir(marker), "something else"))
			make(t, marker)
			ends(t, done)
		})
	}
}

// The volume comes later than the waiter.
func TestTheDirectoryComesLate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	marker := filepath.Join(dir, "m")
	said := make(chan string, 2)
	done := begin(t, marker, func(s string) { said <- s })
	t.Log(<-said, "; ", <-said) // it can neither announce itself nor watch
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	announced(t, marker)
	put(t, marker)
	ends(t, done)
}

// A watch dies with its directory; the waiter must neither spin nor go deaf.
func TestTheDirectoryIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	marker := filepath.Join(dir, "m")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	done := begin(t, marker, quiet(t))
	announced(t, marker)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, marker)
	ends(t, done)
}

func TestWhatIsNoMarkerIsWaitedOn(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"nothing":       func(string) error { return nil },
		"directory":     func(p string) error { return os.Mkdir(p, 0o700) },
		"FIFO":          func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"dangling link": func(p string) error { return os.Symlink("nowhere", p) },
	} {
		marker := filepath.Join(t.TempDir(), "m")
		if err := put(marker); err != nil {
			t.Fatal(err)
		}
		if err := For(marker, 20*time.Millisecond, quiet(t)); !errors.Is(err, ErrDeadline) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Two Envoys of one pod have a waiter each.
func TestTwoWaiters(t *testing.T) {
	marker := filepath.Join(t.TempDir(), "m")
	one, two := begin(t, marker, quiet(t)), begin(t, marker, quiet(t))
	announced(t, marker)
	put(t, marker)
	ends(t, one)
	ends(t, two)
}
