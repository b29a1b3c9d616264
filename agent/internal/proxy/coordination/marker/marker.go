// Package marker is the ready marker: a regular file on which its writer holds
// a lock. The kernel drops the lock with the writer, so a crash can't leave a
// fresh marker behind, and no age or clock is needed (rule 13).
package marker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"aether.internal/agent/internal/proxy/coordination/marker/fresh"
)

// ErrHeld: another living process publishes at the same path.
var ErrHeld = errors.New("another supervisor publishes this marker; give each its own --ready-marker")

// Marker is one path's marker. It's for one goroutine.
type Marker struct {
	path string
	file *os.File // locked; nil while withdrawn
}

// New is the marker at path, not yet published.
func New(path string) *Marker { return &Marker{path: path} }

// Publish makes the marker fresh. Call it as often as you like: a marker that
// somebody removed is there again. A stale one is replaced; a directory, a
// device or a link in its place, or another supervisor's marker, is an error.
// A missing directory is created 0700.
func (m *Marker) Publish() error {
	if m.inPlace() {
		return nil
	}
	if err := m.replace(); err != nil {
		return fmt.Errorf("ready marker: %w", err)
	}
	return nil
}

func (m *Marker) replace() error {
	if err := replaceable(m.path); err != nil {
		return err
	}
	dir := filepath.Dir(m.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := lockedTemp(dir, "."+filepath.Base(m.path)+".*")
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), m.path); err != nil {
		os.Remove(f.Name())
		f.Close()
		return err
	}
	m.close()
	m.file = f
	return nil
}

// lockedTemp creates a file, mode 0600, and locks it before it gets the name
// that readers know: they never see a marker without its lock. Who can open it
// could hold the lock in our place, hence the mode.
func lockedTemp(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		os.Remove(f.Name())
		f.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}

// replaceable refuses to rename over what can't be a marker of ours, such as
// the /dev/null of a mistaken flag.
func replaceable(path string) error {
	err := Fresh(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s: %w", path, ErrHeld)
	case errors.Is(err, fresh.ErrStale), errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return err
}

// Withdraw removes the marker, ours or a stale one. What else is there, another
// living supervisor's marker included, stays, and that is no error.
func (m *Marker) Withdraw() error {
	defer m.close() // after the removal: a reader never sees it unlocked
	if !m.inPlace() && !errors.Is(Fresh(m.path), fresh.ErrStale) {
		return nil
	}
	if err := os.Remove(m.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ready marker: %w", err)
	}
	return nil
}

// inPlace tells whether the path still names the file we hold.
func (m *Marker) inPlace() bool {
	if m.file == nil {
		return false
	}
	mine, err := m.file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(m.path)
	return err == nil && os.SameFile(mine, named)
}

// File is the locked file, nil while the marker is withdrawn.
func (m *Marker) File() *os.File { return m.file }

// Inherit makes file, which another program has published in this process, the
// marker's; the lock goes with the descriptor.
func (m *Marker) Inherit(file *os.File) { m.file = file }

func (m *Marker) close() {
	if m.file != nil {
		m.file.Close()
		m.file = nil
	}
}

// Fresh is nil when path is a regular file whose writer holds its lock, and
// otherwise says what it is. It never blocks, whatever sits at path.
func Fresh(path string) error { return fresh.Check(path) }
