// Package fresh tells whether a ready marker is fresh; package marker explains
// what that is. It is apart from it because proxy-ready links nothing else of
// ours: neither fmt nor os.OpenFile, so that a probe that runs every few seconds
// on every node stays small and starts at once.
package fresh

import (
	"errors"
	"io/fs"
	"syscall"
)

// ErrStale: a regular file, and nobody holds it.
var ErrStale = errors.New("its writer is gone")

var errNoMarker = errors.New("not a regular file")

// Check is nil when path is a regular file whose writer holds its lock, and
// otherwise a *fs.PathError that says what it is. It never blocks, whatever sits
// at path, unless the file system itself does.
func Check(path string) error {
	if err := check(path); err != nil {
		return &fs.PathError{Op: "ready marker", Path: path, Err: err}
	}
	return nil
}

func check(path string) error {
	// O_NONBLOCK: a FIFO would wait for its writer. O_NOFOLLOW: ELOOP for a link.
	fd, err := open(path, syscall.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC)
	if err == syscall.ELOOP {
		return errNoMarker
	}
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return errNoMarker
	}
	return held(fd)
}

// open again if a signal came in between, of which Go's scheduler sends many.
func open(path string, flags int) (fd int, err error) {
	for {
		if fd, err = syscall.Open(path, flags, 0); err != syscall.EINTR {
			return fd, err
		}
	}
}

// held tries the lock, shared so that probes don't take each other for the
// writer, and gives it back at once.
func held(fd int) error {
	err := syscall.Flock(fd, syscall.LOCK_SH|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK {
		return nil
	}
	if err == nil {
		_ = syscall.Flock(fd, syscall.LOCK_UN)
		err = ErrStale
	}
	return err
}
