package configwatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is the loop in a synctest bubble: real files, told events. The loop and
// the story share only channels and an atomic.
type bench struct {
	t       *testing.T
	dir     string
	events  chan fsnotify.Event
	errors  chan error
	failing atomic.Pointer[error]
	changes chan stamped
	lines   chan string // of the log
	start   time.Time   // what wantTold counts from
}

type stamped struct {
	at time.Time
	Change
}

type told struct {
	after time.Duration
	Change
}

func (b *bench) Errors() <-chan error          { return b.errors }
func (b *bench) Events() <-chan fsnotify.Event { return b.events }
func (b *bench) Follow(map[string]bool) (bool, error) {
	if err := b.failing.Load(); err != nil {
		return false, *err
	}
	return false, nil
}

// Write takes a line of the log.
func (b *bench) Write(line []byte) (int, error) {
	b.lines <- string(line)
	return len(line), nil
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) write(name, content string) {
	b.t.Helper()
	write(b.t, b.path(name), content)
}

// tell sends an event and lets the loop digest it.
func (b *bench) tell(name string, op fsnotify.Op) {
	b.events <- fsnotify.Event{Name: b.path(name), Op: op}
	synctest.Wait()
}

// pass lets time pass.
func (b *bench) pass(d time.Duration) {
	time.Sleep(d) // of the bubble
	synctest.Wait()
}

// told takes what was told since the last call, and log the lines logged.
func (b *bench) told() (all []told) {
	for len(b.changes) > 0 {
		c := <-b.changes
		all = append(all, told{c.at.Sub(b.start), c.Change})
	}
	b.start = time.Now()
	return all
}

func (b *bench) log() (all string) {
	for len(b.lines) > 0 {
		all += <-b.lines
	}
	return all
}

func (b *bench) wantTold(want ...told) {
	b.t.Helper()
	if got := b.told(); !slices.Equal(got, want) {
		b.t.Errorf("told %v, want %v", got, want)
	}
}

func inBubble(t *testing.T, o Options, story func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{
			t: t, dir: t.TempDir(), start: time.Now(),
			events: make(chan fsnotify.Event), errors: make(chan error),
			changes: make(chan stamped, 100), lines: make(chan string, 100),
		}
		b.write("config", "v1")
		b.write("binary", "b1")
		o.ConfigPath, o.BinaryPath = b.path("config"), b.path("binary")
		o.Log = slog.New(slog.NewTextHandler(b, nil))
		o, err := o.complete()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		w := newWatcher(o, b, func(c Change) { b.changes <- stamped{time.Now(), c} })
		done := make(chan struct{})
		go func() { defer close(done); w.run(ctx) }() // joined below
		synctest.Wait()
		story(b)
		cancel()
		<-done
	})
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

const ms = time.Millisecond

func (b *bench) replaceByFIFO(name string) {
	os.Remove(b.path(name))
	if err := syscall.Mkfifo(b.path(name), 0o600); err != nil {
		b.t.Fatal(err)
	}
}
