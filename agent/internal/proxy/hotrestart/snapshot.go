package hotrestart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// snapshotName is what the names of snapshots begin with.
const snapshotName = "bootstrap."

// snapshot is the file with just the bytes that were checked (rule 3). It is
// locked while it is ours: several supervisors may share a state directory, and
// each removes what a dead one has left.
type snapshot struct{ file *os.File }

// takeSnapshot writes data to a new file in dir, mode 0600, whose name ends
// like like's: Envoy reads a bootstrap by its ending.
func takeSnapshot(dir, like string, data []byte) (*snapshot, error) {
	for {
		f, err := os.CreateTemp(dir, snapshotName+"*"+filepath.Ext(like))
		if err != nil {
			return nil, err
		}
		s := &snapshot{f}
		switch err := lock(f); {
		case errors.Is(err, syscall.EWOULDBLOCK), err == nil && !s.named():
			f.Close() // swept between the two; another one, then
			continue
		case err == nil:
			_, err = f.Write(data)
			fallthrough
		default:
			if err != nil {
				s.remove()
				return nil, err
			}
		}
		return s, nil
	}
}

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

func (s *snapshot) path() string { return s.file.Name() }

func (s *snapshot) named() bool {
	mine, err := s.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(s.path())
	return err == nil && os.SameFile(mine, there)
}

// remove may be called for none.
func (s *snapshot) remove() {
	if s != nil {
		_ = os.Remove(s.path())
		s.file.Close()
	}
}

// sweepSnapshots removes those whose supervisor is dead.
func sweepSnapshots(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, snapshotName+"*"))
	if err != nil {
		return fmt.Errorf("snapshots: %w", err)
	}
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil || lock(f) == nil {
			_ = os.Remove(path)
		}
		f.Close()
	}
	return nil
}
