package configwatch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// source tells that something happened in directories.
type source interface {
	// Follow makes dirs the watched ones; news means that some weren't before,
	// so what happened in them until now may have been missed. An error means
	// that some aren't watched; the next call tries again.
	Follow(dirs map[string]bool) (news bool, err error)
	// Events is nil while there are none to be had.
	Events() <-chan fsnotify.Event
	// Errors says that events were lost.
	Errors() <-chan error
}

// notifier is the source that asks the kernel.
type notifier struct {
	open    func() (*fsnotify.Watcher, error)
	watcher *fsnotify.Watcher // nil: could not be had
	ids     map[string]fs.FileInfo
	errs    chan error
	drained chan struct{}
}

func newNotifier() *notifier { return &notifier{open: fsnotify.NewWatcher} }

func (n *notifier) Events() <-chan fsnotify.Event {
	if n.watcher == nil {
		return nil
	}
	return n.watcher.Events
}

func (n *notifier) Errors() <-chan error { return n.errs }

// Close ends and joins fsnotify's goroutine and ours.
func (n *notifier) Close() {
	if n.watcher == nil {
		return
	}
	_ = n.watcher.Close() // closes Errors, which ends drain
	<-n.drained
	n.watcher = nil
}

func (n *notifier) start() error {
	if n.watcher != nil {
		return nil
	}
	w, err := n.open()
	if err != nil {
		return fmt.Errorf("no inotify instance (see fs.inotify.max_user_instances): %w", err)
	}
	n.watcher, n.ids = w, map[string]fs.FileInfo{}
	n.errs, n.drained = make(chan error, 1), make(chan struct{})
	go drain(w.Errors, n.errs, n.drained) // joined by Close
	return nil
}

// drain always reads fsnotify's errors: it sends some of them while it holds
// the lock that Add needs, so a loop that is inside Add would wait for itself.
func drain(from <-chan error, to chan<- error, done chan<- struct{}) {
	defer close(done)
	for err := range from {
		select {
		case to <- err:
		default: // one untold error is enough for a look at everything
		}
	}
}

func (n *notifier) Follow(dirs map[string]bool) (news bool, err error) {
	if err := n.start(); err != nil {
		return false, err
	}
	n.forget(dirs)
	var failed []error
	for dir := range dirs {
		added, err := n.add(dir)
		news = news || added
		if err != nil {
			failed = append(failed, err)
		}
	}
	return news, errors.Join(failed...)
}

// forget drops the directories nobody asks for, those that the kernel dropped
// (deleted, moved, unmounted), and those whose name now means another one.
func (n *notifier) forget(wanted map[string]bool) {
	watched := map[string]bool{}
	for _, dir := range n.watcher.WatchList() {
		watched[dir] = true
	}
	for dir, was := range n.ids {
		is, err := os.Stat(dir)
		if wanted[dir] && watched[dir] && err == nil && os.SameFile(was, is) {
			continue
		}
		if watched[dir] {
			_ = n.watcher.Remove(dir) // fails when the kernel was faster
		}
		delete(n.ids, dir)
	}
}

func (n *notifier) add(dir string) (added bool, err error) {
	if n.ids[dir] != nil {
		return false, nil
	}
	// Stat comes first: when dir is replaced in between, the identity is the
	// wrong one and the next Follow watches again.
	fi, err := os.Stat(dir)
	if err == nil {
		err = n.watcher.Add(dir)
	}
	switch {
	case err == nil:
		n.ids[dir] = fi
		return true, nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return true, nil // vanished just now: the route is another one
	case errors.Is(err, syscall.ENOSPC):
		return false, fmt.Errorf("no inotify watch for %s (see fs.inotify.max_user_watches): %w", dir, err)
	}
	return false, fmt.Errorf("no inotify watch for %s: %w", dir, err)
}
