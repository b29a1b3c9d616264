package config

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	poll   = 10 * time.Second       // finds what no event told
	settle = 100 * time.Millisecond // two looks so far apart must agree: a file may be half written
)

// Watch calls apply with each new configuration, until ctx ends. What can't be
// read or doesn't pass is said once, and what runs stays. current is the hash of
// what runs.
func Watch(ctx context.Context, path, current string, apply func(Config), log *slog.Logger) {
	var events chan fsnotify.Event
	var errs chan error
	if w, err := notifier(path); err != nil {
		log.Warn("configuration: no file events; it is polled", "error", err)
	} else {
		defer w.Close()
		events, errs = w.Events, w.Errors
	}
	w := watcher{path: path, current: current, apply: apply, log: log}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	w.look(ctx) // what changed before the watch gives no event
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-events:
			w.look(ctx)
		case err := <-errs: // events were lost; nobody else reads this channel
			log.Debug("configuration: watch", "error", err)
			w.look(ctx)
		case <-tick.C:
			w.look(ctx)
		}
	}
}

// notifier watches the directory, also of a file: an editor and a ConfigMap
// replace it.
func notifier(path string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{path, filepath.Dir(path)} {
		if err := w.Add(dir); err != nil {
			w.Close()
			return nil, err
		}
	}
	return w, nil
}

type watcher struct {
	path, current, refused string // hashes
	apply                  func(Config)
	log                    *slog.Logger
}

// look applies what has changed, once it has settled; what never settles is not
// waited for longer than a second.
func (w *watcher) look(ctx context.Context) {
	for looks := 10; looks > 0; looks-- {
		before := w.hash()
		if before == w.current || before == w.refused {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
		if before == w.hash() {
			break
		}
	}
	c, err := Load(w.path)
	if err != nil {
		w.refused = w.hash()
		w.log.Warn("configuration: refused; what runs stays", "error", err)
		return
	}
	w.current, w.refused = c.Hash, ""
	w.apply(c)
}

// hash of what is there now, "" when it can't be read.
func (w *watcher) hash() string {
	files, err := read(w.path)
	if err != nil {
		return "unreadable"
	}
	return hash(files)
}
