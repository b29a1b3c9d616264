package hotrestart

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

// grave is a shell whose epoch 1 has died while it waited for epoch 0, which
// is a socket of the test.
type grave struct {
	*testing.T
	*shell
	dead   *child
	parent *net.UnixConn
}

func newGrave(t *testing.T) *grave {
	t.Helper()
	dir, err := os.MkdirTemp("", "ag") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{StateDir: dir}, slog.New(slog.DiscardHandler), nil)
	g := &grave{T: t, shell: &shell{
		Supervisor: s, ctx: t.Context(), dirs: envoy.SeatDirs{StateDir: dir, BaseID: 1},
		children: map[int]*child{}, remains: map[int]*remains{},
	}}
	g.children[0] = &child{epoch: 0, parent: -1}
	g.must(g.dirs.Prepare(0))
	g.parent = g.bind(g.dirs.Socket(0, "parent", 0))
	g.dead = &child{epoch: 1, parent: 0, ctx: t.Context(), input: &input{}, seated: true, linked: true}
	g.must(g.dirs.Prepare(1))
	g.must(g.dirs.LinkChild(0, 1))
	g.dead.relay, err = envoy.StartRelay(envoy.RelayOptions{
		Listen: g.dirs.Socket(1, "parent", 0), Parent: g.dirs.Socket(0, "parent", 0), Child: g.dirs.Socket(1, "child", 1),
		Seen: func(envoy.Request) {}, Log: s.log,
	})
	g.must(err)
	g.dead.proc, err = process.Start(process.Spec{Path: "/bin/true"})
	g.must(err)
	g.dead.proc.Wait()
	t.Cleanup(func() {
		g.buryChildrenOf(0)
		g.parent.Close()
		os.RemoveAll(dir)
	})
	return g
}

func (g *grave) must(err error) {
	g.Helper()
	if err != nil {
		g.Fatal(err)
	}
}

func (g *grave) bind(name string) *net.UnixConn {
	g.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	g.must(err)
	return conn
}

// asked is a request of the dead epoch that its parent has yet to read.
func (g *grave) asked() {
	g.Helper()
	conn, err := net.Dial("unixgram", g.dirs.Socket(1, "parent", 0))
	g.must(err)
	defer conn.Close()
	_, err = conn.Write([]byte{0, 0, 0, 0, 0, 0, 0, 4, 0x0a, 2, 0x1a, 0}) // stats
	g.must(err)
	for end := time.Now().Add(10 * time.Second); g.dead.relay.AllRead(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			g.Fatal("the request was not passed")
		}
	}
}

// answers is the parent's late answer, to the newcomer's name under its own
// path; where nobody has that name Envoy aborts.
func (g *grave) answers() error {
	_, err := g.parent.WriteToUnix([]byte("late"), &net.UnixAddr{Name: g.dirs.Socket(0, "child", 1), Net: "unixgram"})
	return err
}

func TestALivingParentMayAnswerADeadNewcomer(t *testing.T) {
	g := newGrave(t)
	g.bury(g.dead)
	g.must(g.answers())
	delete(g.children, 0)
	g.bury(&child{epoch: 0, parent: -1, ctx: t.Context(), seated: true})
	for _, name := range []string{g.dirs.Dir(1), g.dirs.Dir(0)} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Errorf("when the parent is gone too, %s is left: %v", filepath.Base(name), err)
		}
	}
}

func TestNothingRemainsOfANewcomerWithoutAParentOrAProcess(t *testing.T) {
	for name, change := range map[string]func(*grave){
		"no parent":  func(g *grave) { delete(g.children, 0) },
		"no process": func(g *grave) { g.dead.proc = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGrave(t)
			change(g)
			g.bury(g.dead)
			if _, err := os.Lstat(g.dirs.Dir(1)); !os.IsNotExist(err) || len(g.remains) > 0 {
				t.Errorf("%v, %d remain", err, len(g.remains))
			}
		})
	}
}

// The next newcomer would take the answers for its own.
func TestANewcomerWaitsUntilTheParentHasReadWhatAnEarlierOneAsked(t *testing.T) {
	g := newGrave(t)
	g.asked()
	g.bury(g.dead)
	ctx, cancel := context.WithCancel(t.Context())
	g.serve()
	waits := func() { cancel() }
	if err := g.makeWay(ctx, g.inPlaceOf(1), waits); err == nil || err.Error() != unread {
		t.Errorf("the parent has read nothing: %v", err)
	}
	g.must(g.answers()) // the name is still there

	waits = func() {
		_, err := g.parent.Read(make([]byte, 100))
		g.must(err)
	}
	g.must(g.makeWay(t.Context(), g.inPlaceOf(1), waits))
	if err := g.answers(); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("the seat is not free: %v", err)
	}
}

// serve is the owner: it runs what it is asked.
func (g *grave) serve() {
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(done)
		for {
			select {
			case f := <-g.asks:
				f(g.shell)
			case <-stop:
				return
			}
		}
	}()
	g.Cleanup(func() { close(stop); <-done })
}
