// Package wait is the waiter: a preStop hook that holds an Envoy container until
// its pod has drained. It links the standard library and nothing else, and not
// fmt: it is copied into images that have no shell.
package wait

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unsafe"
)

// Defaults: where router and waiter meet, on a volume that both containers mount,
// and what fits into a grace period of a minute.
const (
	DefaultMarker   = "/var/run/atenet/drain-complete"
	DefaultDeadline = 55 * time.Second
)

// poll is how often the marker is looked for whatever inotify says: there may be
// no watch (too many in this user's name), or the volume comes later.
const poll = time.Second

// ErrDeadline: the marker has not come.
var ErrDeadline = errors.New("the drain was not over by the deadline")

// Announcement is the file, beside the marker, on which a waiter holds a shared
// lock while it waits: from it the router knows that its pod is ending, and not
// its own container alone.
func Announcement(marker string) string { return marker + ".awaited" }

// For returns when a regular file is at marker, or ErrDeadline after within. It
// needs nothing but to see the file: where it can't announce itself or watch,
// it says why (say), and waits all the same.
func For(marker string, within time.Duration, say func(string)) error {
	if at(marker) {
		return nil
	}
	deadline := time.Now().Add(within)
	var a announcement
	defer a.close()
	var w watch
	defer w.close()
	for first := true; ; first = false {
		errA, errW := a.make(Announcement(marker)), w.open(filepath.Dir(marker))
		if first && errA != nil {
			say("waits unseen: " + errA.Error())
		}
		if first && errW != nil {
			say("looks once a second: " + errW.Error())
		}
		// Only now: a marker that came before the watch gives no event.
		if at(marker) {
			return nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return ErrDeadline
		}
		w.sleep(min(left, poll))
	}
}

func at(marker string) bool {
	info, err := os.Lstat(marker)
	return err == nil && info.Mode().IsRegular()
}

// announcement is the held lock.
type announcement struct{ file *os.File }

func (a *announcement) make(path string) error {
	if a.file != nil {
		return nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o644)
	if err != nil {
		return err
	}
	// Shared: a pod may have several Envoys. The router's look takes it for an
	// instant, exclusively; the next round gets it.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB); err != nil {
		f.Close()
		return os.NewSyscallError("flock", err)
	}
	a.file = f
	return nil
}

func (a *announcement) close() {
	if a.file != nil {
		a.file.Close()
	}
}

// watch is an inotify of one directory.
type watch struct {
	file   *os.File
	buffer [4096]byte
}

// what may make the marker appear, or the watch useless.
const events = syscall.IN_CREATE | syscall.IN_MOVED_TO | syscall.IN_ONLYDIR

func (w *watch) open(dir string) error {
	if w.file != nil {
		return nil
	}
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("inotify_init1", err)
	}
	if _, err := syscall.InotifyAddWatch(fd, dir, events); err != nil {
		syscall.Close(fd)
		return &os.PathError{Op: "watch", Path: dir, Err: err}
	}
	w.file = os.NewFile(uintptr(fd), "inotify")
	return nil
}

// sleep ends with the next event, at the latest after d. What the event says
// doesn't matter: the caller looks.
func (w *watch) sleep(d time.Duration) {
	if w.file == nil || w.file.SetReadDeadline(time.Now().Add(d)) != nil {
		time.Sleep(d)
		return
	}
	n, err := w.file.Read(w.buffer[:])
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	if err != nil || n >= syscall.SizeofInotifyEvent && ignored(w.buffer[:n]) {
		w.close() // the directory is gone: the next round watches its successor
		w.file = nil
	}
}

func (w *watch) close() {
	if w.file != nil {
		w.file.Close()
	}
}

// ignored tells whether the first event says that the watch has ended; of a
// deleted directory there is no other.
func ignored(events []byte) bool {
	return (*syscall.InotifyEvent)(unsafe.Pointer(&events[0])).Mask&syscall.IN_IGNORED != 0
}
