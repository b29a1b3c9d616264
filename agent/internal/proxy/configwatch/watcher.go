package configwatch

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watcher is the loop. One goroutine, Watch's caller, owns all of it.
type watcher struct {
	Options
	config, binary *target // nil: not watched
	targets        []*target
	source         source
	changed        func(Change)

	last     fsnotify.Event // the one before
	polled   time.Time
	degraded bool // some directory gives no events
}

func newWatcher(o Options, s source, changed func(Change)) *watcher {
	w := &watcher{Options: o, source: s, changed: changed}
	if o.ConfigPath != "" {
		w.config = newConfig(o.ConfigPath, o.Baseline.ConfigHash)
		w.targets = append(w.targets, w.config)
	}
	if o.BinaryPath != "" {
		w.binary = newBinary(o.BinaryPath, o.Baseline)
		w.targets = append(w.targets, w.binary)
	}
	return w
}

func (w *watcher) pace() pace { return pace{w.Settle, w.Max} }

func (w *watcher) run(ctx context.Context) {
	w.start(ctx)
	timer := time.NewTimer(w.wait())
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-w.source.Events():
			w.notice(ev)
		case <-w.source.Errors():
			w.noticeAll() // events were lost
		case <-timer.C:
		}
		w.turn(ctx)
		timer.Reset(w.wait())
	}
}

// start takes the content it finds as the baseline where the caller gave none.
func (w *watcher) start(ctx context.Context) {
	w.follow()
	for _, t := range w.targets {
		if isMountPoint(t.path) {
			w.Log.Warn("this path is a mount of its own: a replaced file never shows up here, and what is written in place may be seen only by the poll; mount its directory instead (no subPath)",
				"file", t.what, "path", t.path, "poll", w.Poll)
		}
		if t.known() {
			continue
		}
		if label, err := t.look(ctx, t.path); err == nil {
			t.tracker.reported = label
			_, _ = t.differs(ctx, label) // for the hash; an error leaves it unknown, which differs from any
		}
	}
	w.polled = time.Time{} // the first turn looks, for the baselines that were given
}

// notice tells the trackers of an event.
func (w *watcher) notice(ev fsnotify.Event) {
	before := w.last
	w.last = ev
	for _, t := range w.targets {
		if t.concerns(ev.Name) {
			t.tracker = t.tracker.noticed(time.Now(), isSwap(before, ev), w.pace())
		}
	}
}

func (w *watcher) noticeAll() {
	for _, t := range w.targets {
		t.tracker = t.tracker.noticed(time.Now(), false, w.pace())
	}
}

// isSwap tells whether ev brought a file that was whole before it came here:
// Kubernetes' link, or something renamed. fsnotify calls a rename's arrival
// Create; what gives it away is the departure it follows within the directory
// (unless that was this name's own, a file put aside before a new one is
// written), or a file older than its inode's last change. The latter alone
// misses what was written and renamed within one tick of the kernel's clock.
func isSwap(before, ev fsnotify.Event) bool {
	if !ev.Has(fsnotify.Create) {
		return false
	}
	if filepath.Base(ev.Name) == "..data" {
		return true
	}
	fi, err := os.Lstat(ev.Name)
	if err != nil || fi.Mode().IsRegular() && fi.Size() == 0 { // just created, perhaps with a chmod after
		return false
	}
	if before.Has(fsnotify.Rename) && before.Name != ev.Name &&
		filepath.Dir(before.Name) == filepath.Dir(ev.Name) {
		return true
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && !fi.IsDir() && st.Mtim.Nano() < st.Ctim.Nano()
}

// turn looks at what is due, and reports.
func (w *watcher) turn(ctx context.Context) {
	now := time.Now()
	poll := !now.Before(w.polled.Add(w.poll()))
	due := func(t *target) bool {
		return poll || !t.tracker.due.IsZero() && !now.Before(t.tracker.due)
	}
	if poll {
		w.polled = now
	}
	var c Change
	followed := false
	for _, t := range w.targets {
		if !due(t) {
			continue
		}
		if !followed {
			// Before the look: what changes after it is then an event.
			w.follow()
			followed = true
		}
		if w.look(ctx, t) {
			c.Config = c.Config || t == w.config
			c.Binary = c.Binary || t == w.binary
		}
	}
	if c != (Change{}) && ctx.Err() == nil {
		w.changed(c)
	}
}

// look tells whether t has content that wants to be reported.
func (w *watcher) look(ctx context.Context, t *target) bool {
	label, err := t.look(ctx, t.path)
	now := time.Now()
	next, v := t.tracker.looked(now, label, w.pace())
	differs := false
	if v == settled {
		if differs, err = t.differs(ctx, label); err != nil {
			next, v = t.tracker.looked(now, "", w.pace())
		}
	}
	t.tracker = next
	w.tellAbsence(t, v, err)
	return differs
}

// tellAbsence logs when t is lost and when it's back, once each.
func (w *watcher) tellAbsence(t *target, v verdict, err error) {
	switch {
	case err == nil && t.lost:
		t.lost = false
		w.Log.Info("the file is back", "file", t.what, "path", t.path)
	case v == lost && !t.lost:
		t.lost = true
		w.Log.Warn("the file can't be read; what runs stays, and the watch goes on",
			"file", t.what, "path", t.path, "error", err)
	}
}

// follow makes the source watch every directory on the ways to the files, again
// until nothing is new: a way may change before its watch stands.
func (w *watcher) follow() {
	var err error
	for range 3 {
		var news bool
		news, err = w.source.Follow(w.directories())
		if err != nil || !news {
			break
		}
	}
	switch {
	case err != nil && !w.degraded:
		w.Log.Warn("the kernel gives no file events; the files are polled instead", "poll", min(w.Poll, blindPoll), "error", err)
	case err == nil && w.degraded:
		w.Log.Info("the kernel gives file events again", "poll", w.Poll)
	}
	w.degraded = err != nil
}

func (w *watcher) directories() map[string]bool {
	dirs := map[string]bool{}
	for _, t := range w.targets {
		t.places = route(t.path)
		for _, p := range t.places {
			dirs[p.dir] = true
		}
	}
	return dirs
}

func (w *watcher) poll() time.Duration {
	if w.degraded {
		return min(w.Poll, blindPoll)
	}
	return w.Poll
}

// wait is the time to the next look.
func (w *watcher) wait() time.Duration {
	next := w.polled.Add(w.poll())
	for _, t := range w.targets {
		if !t.tracker.due.IsZero() {
			next = earlier(next, t.tracker.due)
		}
	}
	return max(0, time.Until(next))
}
