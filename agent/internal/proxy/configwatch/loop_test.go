package configwatch

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

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
