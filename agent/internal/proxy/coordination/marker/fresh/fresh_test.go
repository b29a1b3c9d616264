package fresh

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Package marker's tests have markers of living and dead writers; here is what
// the probe may find instead.
func TestCheckNamesWhatItFinds(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(string) error
		want string
	}{
		"nothing":       {func(string) error { return nil }, "no such file"},
		"unlocked":      {func(p string) error { return os.WriteFile(p, nil, 0o600) }, "its writer is gone"},
		"directory":     {func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
		"FIFO":          {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "not a regular file"},
		"dangling link": {func(p string) error { return os.Symlink("nowhere", p) }, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "ready")
			if err := c.put(path); err != nil {
				t.Fatal(err)
			}
			if err := Check(path); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v, want %q and the path", err, c.want)
			}
		})
	}
}

func TestALockMakesItFresh(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ready")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(path); !errors.Is(err, ErrStale) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("unlocked: %v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := Check(path); err != nil {
		t.Errorf("locked: %v", err)
	}
	f.Close()
	if err := Check(path); !errors.Is(err, ErrStale) {
		t.Errorf("its writer is gone: %v", err)
	}
}
