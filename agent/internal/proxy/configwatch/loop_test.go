package configwatch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
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

func TestAWriteIsToldWhenItHasSettled(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.pass(5 * time.Second)
		b.wantTold()
		b.write("config", "v2")
		b.tell("config", fsnotify.Write)
		b.pass(5 * time.Second)
		b.wantTold(told{100 * ms, Change{Config: true}})
	})
}

func TestASwapIsToldAtOnce(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.pass(5 * time.Second)
		b.wantTold()
		b.write("config", "v2")
		b.tell("config.tmp", fsnotify.Rename)
		b.tell("config", fsnotify.Create)
		b.wantTold(told{0, Change{Config: true}})
		b.write("binary", "b2")
		b.tell("binary.tmp", fsnotify.Rename)
		b.tell("binary", fsnotify.Create)
		b.wantTold(told{0, Change{Binary: true}})
		b.pass(time.Minute)
		b.wantTold()
	})
}

// B30, B03, and what a trailing debounce gets wrong.
func TestSteadyWritesStarveNothing(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.pass(time.Second)
		b.wantTold()
		for n := range 100 { // 5 s
			b.write("config", strings.Repeat("x", n))
			b.tell("config", fsnotify.Write)
			b.pass(50 * ms)
		}
		got := b.told()
		if n := len(got); n < 4 || n > 6 || got[0].after > time.Second {
			t.Errorf("in 5 s of writes: %v; want one a second", got)
		}
		b.write("config", "the last one")
		b.tell("config", fsnotify.Write)
		b.pass(time.Minute)
		if got := b.told(); len(got) != 1 || got[0].after > 300*ms {
			t.Errorf("after the last write: %v", got)
		}
	})
}

func TestNoChange(t *testing.T) {
	for name, act := range map[string]func(*bench){
		"same content in place": func(b *bench) { b.write("config", "v1"); b.tell("config", fsnotify.Write) },
		"same content by rename": func(b *bench) {
			b.write("config.tmp", "v1")
			os.Rename(b.path("config.tmp"), b.path("config"))
			b.tell("config", fsnotify.Create)
		},
		"chmod": func(b *bench) { os.Chmod(b.path("config"), 0o600); b.tell("config", fsnotify.Chmod) },
		"touch": func(b *bench) {
			os.Chtimes(b.path("config"), t0, t0)
			os.Chtimes(b.path("binary"), t0, t0)
			b.tell("config", fsnotify.Chmod)
			b.tell("binary", fsnotify.Chmod)
		},
		"same binary by rename": func(b *bench) {
			b.write("binary.tmp", "b1")
			os.Rename(b.path("binary.tmp"), b.path("binary"))
			b.tell("binary.tmp", fsnotify.Rename)
			b.tell("binary", fsnotify.Create)
		},
		"another file": func(b *bench) { b.write("other", "v2"); b.tell("other", fsnotify.Create) },
		"missing for a while": func(b *bench) {
			os.Remove(b.path("config"))
			b.tell("config", fsnotify.Remove)
			b.pass(time.Minute)
			b.write("config", "v1")
			b.tell("config", fsnotify.Create)
		},
		"an event for nothing":       func(b *bench) { b.tell("config", fsnotify.Write) },
		"lost events for nothing":    func(b *bench) { b.errors <- fsnotify.ErrEventOverflow },
		"a FIFO in the file's place": func(b *bench) { b.replaceByFIFO("config"); b.tell("config", fsnotify.Create) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(b *bench) {
				b.pass(time.Second)
				act(b)
				b.pass(time.Minute)
				b.wantTold()
			})
		})
	}
}

func TestChangesWithoutAnEventAreFoundByThePoll(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.pass(time.Second)
		b.wantTold()
		b.write("config", "v2")
		b.write("binary", "b2, longer")
		b.pass(time.Minute)
		b.wantTold(told{9100 * ms, Change{Config: true, Binary: true}})
	})
}

func TestLostEventsAreALook(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		b.pass(time.Second)
		b.wantTold()
		b.write("config", "v2")
		b.errors <- fsnotify.ErrEventOverflow
		b.pass(time.Second)
		b.wantTold(told{100 * ms, Change{Config: true}})
	})
}

// B52: no inotify is a warning and a faster poll, and once it can be had again
// the poll slows down.
func TestWithoutEventsThePollIsFaster(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		none := errors.New("too many open files")
		b.failing.Store(&none)
		b.pass(11 * time.Second) // a poll has found out
		b.wantTold()
		b.write("config", "v2")
		b.pass(3 * time.Second)
		if got := b.told(); len(got) != 1 || got[0].after > 1100*ms {
			t.Errorf("told %v; want once, within 1.1s", got)
		}
		b.failing.Store(nil)
		b.pass(10 * time.Second)
		if log := b.log(); strings.Count(log, "polled instead") != 1 || strings.Count(log, "events again") != 1 ||
			!strings.Contains(log, "too many open files") {
			t.Errorf("the log:\n%s", log)
		}
	})
}

func TestAbsenceIsLoggedOnce(t *testing.T) {
	inBubble(t, Options{}, func(b *bench) {
		os.Remove(b.path("config"))
		b.tell("config", fsnotify.Remove)
		b.pass(500 * ms)
		if log := b.log(); log != "" {
			t.Errorf("half a second is a swap: %s", log)
		}
		b.pass(time.Minute)
		b.write("config", "v2")
		b.tell("config", fsnotify.Create)
		b.pass(time.Minute)
		if log := b.log(); strings.Count(log, "can't be read") != 1 || strings.Count(log, "is back") != 1 {
			t.Errorf("the log:\n%s", log)
		}
		if got := b.told(); len(got) != 1 {
			t.Errorf("told %v", got)
		}
	})
}

func TestBaseline(t *testing.T) {
	for _, c := range []struct {
		name string
		Baseline
		want []told
	}{
		{"none", Baseline{}, nil},
		{"what is there", Baseline{ConfigHash: hashOf("v1"), BinaryHash: hashOf("b1")}, nil},
		{"an older config", Baseline{ConfigHash: hashOf("v0")}, []told{{100 * ms, Change{Config: true}}}},
		{"an older binary", Baseline{BinaryHash: hashOf("b0"), BinaryID: ID{Inode: 1}}, []told{{100 * ms, Change{Binary: true}}}},
		{"the same binary at another place", Baseline{BinaryHash: hashOf("b1"), BinaryID: ID{Inode: 1}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, Options{Baseline: c.Baseline}, func(b *bench) {
				b.pass(time.Minute)
				b.wantTold(c.want...)
			})
		})
	}
}

func TestAnUnchangedBinaryIsNeverRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "binary")
		os.WriteFile(path, []byte("b1"), 0o700)
		fi, _ := os.Stat(path)
		b := newBinary(path, Baseline{BinaryHash: hashOf("b1"), BinaryID: IdentityOf(fi)})
		b.hash = func(context.Context, string) (string, error) { t.Error("it was hashed"); return "", nil }
		w := &watcher{Options: Options{Poll: time.Second, Settle: ms, Max: ms}, source: &bench{}, binary: b, targets: []*target{b}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.run(ctx)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"nothing to watch":  {},
		"negative interval": {ConfigPath: "x", Poll: -1},
	} {
		if err := Watch(t.Context(), o, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
