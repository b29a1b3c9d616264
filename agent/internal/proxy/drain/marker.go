package drain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"aether.internal/agent/internal/proxy/drain/wait"
)

// Marker is the file that says: the drain is over, Envoy may end.
type Marker struct{ path string }

// NewMarker touches nothing.
func NewMarker(path string) *Marker { return &Marker{path} }

// reserved is the file that Write renames: it has its inode already when the
// disk is full.
func (m *Marker) reserved() string {
	return filepath.Join(filepath.Dir(m.path), "."+filepath.Base(m.path)+".reserved")
}

func (m *Marker) begun() string {
	return filepath.Join(filepath.Dir(m.path), "."+filepath.Base(m.path)+".begun")
}

// Leftovers are of an earlier run of our container, in a pod that lives on.
type Leftovers struct {
	Marker bool // it had drained
	Drain  bool // it had begun to: Envoy may need an Undo
}

// Clear removes a marker that an earlier run has left, which would end Envoy in
// the moment its pod is deleted, and makes what is needed later: the next marker's
// file and the one that the waiter locks, whose own mount may be full or read-only
// by then. Without the volume it fails, and nothing can drain.
func (m *Marker) Clear() (left Leftovers, err error) {
	_, begun := os.Lstat(m.begun())
	left.Drain = begun == nil
	err = os.Remove(m.path)
	left.Marker = err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return left, fmt.Errorf("drain marker: %w", err)
	}
	if err := errors.Join(create(m.reserved()), create(wait.Announcement(m.path))); err != nil {
		return left, fmt.Errorf("drain marker: %w", err)
	}
	return left, nil
}

// Begin remembers, beyond our own end, that Envoy is being drained, and by us.
func (m *Marker) Begin() error {
	if err := create(m.begun()); err != nil {
		return fmt.Errorf("drain marker: %w", err)
	}
	return nil
}

// Undone forgets it.
func (m *Marker) Undone() { _ = os.Remove(m.begun()) } // another undo would do no harm

// Write makes the marker appear, by a rename. It may be called again.
func (m *Marker) Write() error {
	err := os.Rename(m.reserved(), m.path)
	if errors.Is(err, fs.ErrNotExist) { // never reserved, or written already
		err = create(m.path)
	}
	if err != nil {
		return fmt.Errorf("drain marker: %w", err)
	}
	return nil
}

// create makes an empty regular file that everybody may see: the waiter may run
// as another user.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// Awaited tells whether a waiter waits for the marker at this moment. The kubelet
// runs it when it ends the Envoy container, hence, together with a SIGTERM to
// ourselves, when the pod is ending. It holds a lock that the kernel frees with it.
func (m *Marker) Awaited() bool {
	f, err := os.OpenFile(wait.Announcement(m.path), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close() // frees the lock, if we got it
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
