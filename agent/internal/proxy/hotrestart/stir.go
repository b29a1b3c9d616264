package hotrestart

import (
	"context"
	"log/slog"
	"time"

	"github.com/fsnotify/fsnotify"
)

// stir tells when something changes in directories. Nobody takes over from our
// epoch without a change in the state directory and in our seat's: to look each
// second whether somebody does was four fifths of what an idle supervisor costs
// (docs/benchmarks.md), because each wake-up of a Go program wakes several threads.
type stir struct {
	watcher *fsnotify.Watcher // nil: there are no events to be had
	last    time.Time
}

// watchStir is of these directories, from now on.
func watchStir(log *slog.Logger, dirs ...string) *stir {
	s := &stir{last: time.Now()}
	watcher, err := fsnotify.NewWatcher()
	for _, dir := range dirs {
		if err == nil {
			err = watcher.Add(dir)
		}
	}
	if err != nil {
		log.Debug("no file events of the state directory; it is looked at each second", "error", err)
		if watcher != nil {
			_ = watcher.Close()
		}
		return s
	}
	s.watcher = watcher
	return s
}

// pause is how long nothing need be looked at: seldom, once nothing has stirred for
// a while. Events may be lost, and some file systems have none.
func (s *stir) pause() time.Duration {
	if s.watcher == nil || time.Since(s.last) < stirred {
		return lookoutPause
	}
	return calmPause
}

// wait returns when something stirs, at the latest after pause; false when ctx has
// ended.
func (s *stir) wait(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	var events <-chan fsnotify.Event
	var errs <-chan error // events were lost
	if s.watcher != nil {
		events, errs = s.watcher.Events, s.watcher.Errors
	}
	for {
		select {
		case <-events:
		case <-errs:
		case <-t.C:
			return true
		case <-ctx.Done():
			return false
		}
		s.last = time.Now()
		if pause > lookoutPause { // else it is looked at soon enough
			return true
		}
	}
}

func (s *stir) close() {
	if s.watcher != nil {
		_ = s.watcher.Close()
	}
}
