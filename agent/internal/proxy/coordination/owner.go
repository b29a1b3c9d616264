package coordination

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openOwn opens a regular file of ours and nothing else: /dev/shm is everybody's,
// and what sits at our name there may be a link, a FIFO or another user's file.
func openOwn(path string, flags int) (*os.File, error) {
	// O_NONBLOCK: a FIFO must be told, not waited for. Files of Go are O_CLOEXEC.
	f, err := os.OpenFile(path, flags|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, explain(path, err)
	}
	fi, err := f.Stat()
	if err == nil {
		err = checkOwn(fi, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// explain says what sits at path, where that is why it couldn't be opened.
func explain(path string, err error) error {
	if fi, statErr := os.Lstat(path); statErr == nil {
		if why := checkOwn(fi, 0); why != nil {
			return why
		}
	}
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err // the caller names the path
	}
	return err
}

// checkOwn refuses what is not of type want (0: a regular file) or not ours.
func checkOwn(fi fs.FileInfo, want fs.FileMode) error {
	owner := -1
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		owner = int(st.Uid)
	}
	switch got := fi.Mode().Type(); {
	case got != want:
		return fmt.Errorf("it is %s (owner: uid %d), not %s; remove it", kind(got), owner, kind(want))
	case owner != os.Geteuid():
		return fmt.Errorf("it belongs to uid %d, and we are uid %d; remove it, or run as its owner", owner, os.Geteuid())
	}
	return nil
}

func kind(m fs.FileMode) string {
	switch m {
	case 0:
		return "a regular file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}
