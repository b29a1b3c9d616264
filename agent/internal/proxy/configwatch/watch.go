// Package configwatch tells when the bootstrap or the Envoy binary changed.
//
// It watches directories, never files: a ConfigMap changes by the rename of a
// link two steps away from the file, and an editor replaces the file, so a
// watch on the file itself goes deaf after the first change. Events only say
// when to look; what counts is content. A slow poll finds what no event told.
//
// [tracker] decides, without a clock or a file; [watcher] is the loop that
// feeds it; [notifier] is the adapter of fsnotify.
package configwatch

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// The defaults of Options.
const (
	DefaultPoll   = 10 * time.Second
	DefaultSettle = 100 * time.Millisecond
	DefaultMax    = time.Second
)

// blindPoll is the poll where the kernel gives no events.
const blindPoll = time.Second

// Change says which of the watched files has content that was never reported.
type Change struct{ Config, Binary bool }

// Options of Watch; a zero duration stands for its default.
type Options struct {
	ConfigPath, BinaryPath string        // an empty one is not watched
	Poll                   time.Duration // between looks without any event; at most 1 s where the kernel gives none
	Settle                 time.Duration // two looks this far apart must agree
	Max                    time.Duration // a change is reported this long after its first sign even if they never do
	Baseline               Baseline
	Log                    *slog.Logger // nil: silent
}

// Baseline is what the caller already runs: content that differs from it when
// the watch starts is a change like any other. Where it is empty, the content
// found at the start takes its place, and a change made between the caller's
// own read and Watch stays unnoticed.
type Baseline struct {
	ConfigHash string // hex SHA-256 of the config's bytes
	BinaryHash string // hex SHA-256 of the binary's bytes
	BinaryID   ID     // IdentityOf the file that was hashed; zero: it's hashed once more
}

// Watch blocks until ctx ends and then returns nil. It calls changed from the
// goroutine it was called on, once per change; looks wait until changed returns.
// Every error is one of the options.
//
// A `..data` swap or a rename is reported at once; anything else once two looks
// Settle apart agree, and at most Max after its first sign, so that steady
// writes starve nobody. The same content, a chmod or a touch is no change, and
// neither is a missing or unreadable file: it's looked at again.
func Watch(ctx context.Context, o Options, changed func(Change)) error {
	o, err := o.complete()
	if err != nil {
		return err
	}
	n := newNotifier()
	defer n.Close()
	newWatcher(o, n, changed).run(ctx)
	return nil
}

func (o Options) complete() (Options, error) {
	if o.ConfigPath == "" && o.BinaryPath == "" {
		return o, errors.New("configwatch: neither a config nor a binary to watch")
	}
	for _, d := range []struct {
		value *time.Duration
		or    time.Duration
	}{{&o.Poll, DefaultPoll}, {&o.Settle, DefaultSettle}, {&o.Max, DefaultMax}} {
		if *d.value < 0 {
			return o, errors.New("configwatch: a negative interval")
		}
		if *d.value == 0 {
			*d.value = d.or
		}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
