package configwatch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

const never = time.Hour

// deadline is for what happens within milliseconds on an idle machine.
const deadline = 20 * time.Second

// swapsOnly tells nothing but what is told at once.
var swapsOnly = Options{Poll: never, Settle: never, Max: never}

// settling tells writes too, but by events alone.
var settling = Options{Poll: never}

// live is the whole watch on real files with the kernel's events.
type live struct {
	t     *testing.T
	dir   string
	told  chan Change
	stood chan struct{} // a value each time all watches stand
	*notifier
}

func (l *live) Follow(dirs map[string]bool) (bool, error) {
	news, err := l.notifier.Follow(dirs)
	if err == nil && !news {
		select {
		case l.stood <- struct{}{}:
		default:
		}
	}
	return news, err
}

// onDisk runs the watch on dir/config and dir/binary, as layout made them.
func onDisk(t *testing.T, o Options, layout func(dir string)) *live {
	t.Helper()
	l := &live{t: t, dir: t.TempDir(), told: make(chan Change, 100), stood: make(chan struct{}, 100), notifier: newNotifier()}
	l.write("binary", "b1")
	if layout == nil {
		l.write("config", "v1")
	} else {
		layout(l.dir)
	}
	o.ConfigPath, o.BinaryPath = l.path("config"), l.path("binary")
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := newWatcher(o, l, func(c Change) { l.told <- c })
	done := make(chan struct{})
	go func() { defer close(done); w.run(ctx) }() // joined by the cleanup
	t.Cleanup(func() { cancel(); <-done; l.Close() })
	// Twice: the first look, too, has been prepared then.
	<-l.stood
	<-l.stood
	return l
}

func (l *live) path(name string) string { return filepath.Join(l.dir, name) }

func (l *live) write(name, content string) { write(l.t, l.path(name), content) }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (l *live) rename(from, to string) {
	l.t.Helper()
	if err := os.Rename(l.path(from), l.path(to)); err != nil {
		l.t.Fatal(err)
	}
}

// wantTold waits for the next report.
func (l *live) wantTold(want Change) {
	l.t.Helper()
	start := time.Now()
	select {
	case got := <-l.told:
		if got != want {
			l.t.Fatalf("told %+v, want %+v", got, want)
		}
		l.t.Logf("told after %v", time.Since(start))
	case <-time.After(deadline):
		l.t.Fatalf("nothing told in %v, want %+v", deadline, want)
	}
}

// wantQuiet is for acts whose look is immediate: a swap that follows them is
// the next thing told.
func (l *live) wantQuiet() {
	l.t.Helper()
	l.write("b.tmp", fmt.Sprint("a binary of ", time.Now()))
	l.rename("b.tmp", "binary")
	l.wantTold(Change{Binary: true})
}
