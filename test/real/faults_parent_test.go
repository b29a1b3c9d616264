package real

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"aether.internal/test/node"
	"aether.internal/test/xds"
)

const (
	goesOnAlone = "the newcomer goes on without its parent"
	nobodyElse  = "what nobody is there to answer"
	unanswered  = "without a relay nobody answers Envoy for its parent, and it aborts some ten seconds later (fact 4)"
)

// parentFaults: whoever dies, a successor that has a relay goes on.
func parentFaults() []fault {
	rows := slices.Concat(
		fault{name: "is killed while the newcomer initialises", play: parentKilledInInit, said: []string{crashed, goesOnAlone, "epoch serves"},
			harm: "what it was answering, and whoever waited longer than their patience for the newcomer", dark: true}.by(shared, own),
		fault{name: "is killed while the newcomer initialises", play: parentKilledInPlainInit, said: []string{crashed}, unsaid: []string{goesOnAlone},
			harm: nobodyElse, dark: true, ends: 137}.by(plain),
		fault{name: "is killed while the newcomer is withheld", play: parentKilledWithheld, said: []string{crashed, goesOnAlone, "epoch serves"}, harm: itsOwn}.by(shared, own),
		fault{name: "is killed at the moment of the commit", play: parentKilledAtCommit, said: []string{"old epoch has ended"}, harm: itsOwn}.by(shared, own),
		fault{name: "is killed while it drains", play: parentKilledDraining, said: []string{"signal 9 (SIGKILL)"}}.by(shared, own),
		fault{name: "is killed while it drains", play: parentKilledInPlain, said: []string{crashed, "signal 6 (SIGABRT)"}, harm: unanswered, dark: true, ends: 134}.by(plain),
		fault{name: "is stopped, then killed with a request outstanding", play: parentStoppedAndKilled, said: []string{crashed, goesOnAlone, "epoch serves"},
			harm: "what it was answering, and whoever came before the newcomer listened", dark: true}.by(shared, own),
		fault{name: "is stopped while it drains, then killed with a request outstanding", play: parentStoppedDraining, said: []string{"signal 9 (SIGKILL)"}}.by(shared),
		fault{name: "is stopped while it drains, for 20 s", play: parentStoppedForGood, said: []string{"the parent does not answer"}, unsaid: []string{crashed}}.by(shared),
		fault{name: "three generations end in odd order, and all of Envoy's timers fire", play: oddOrder, args: []string{"--handoff-deadline", "3s", "--drain-time", "1s", "--parent-shutdown-time", "6s"},
			said: []string{"old epoch has ended"}}.by(shared),
		fault{name: "the serving epoch is killed, and no other lives", play: newestAlone, said: []string{crashed, "signal 9 (SIGKILL)"}, harm: nobodyElse, dark: true, ends: 137}.by(shared, plain),
		fault{name: "the serving epoch is killed four times while its parent drains", play: crashLoop, said: []string{crashed, again, `"try":3`}, unsaid: []string{`"try":4`}, harm: untilUp + "; the fourth time is the end", dark: true, ends: 137}.by(shared),
	)
	return inGroup("The parent", rows)
}

// slowNewcomer brings a newcomer into init, where it waits for a control plane
// until that is let to answer.
func (c *scene) slowNewcomer() (answer func()) {
	c.Helper()
	dir, err := os.MkdirTemp("", "ax") // not the node's, where nothing may be left
	c.must(err)
	c.Cleanup(func() { os.RemoveAll(dir) })
	c.Bootstrap.XDS, c.Bootstrap.InitialFetchTimeout = filepath.Join(dir, "xds"), 0
	asked, hangUp := c.silence(c.Bootstrap.XDS)
	c.write("v2")
	c.hup()
	<-asked
	c.await("the newcomer's process", inState(1, "starting"))
	return func() {
		hangUp()
		control := xds.New(c.Bootstrap.XDS)
		control.Set(xds.Healthy(c.Upstream.HTTP))
		c.must(control.Up())
		c.Cleanup(control.Close)
	}
}

// silence takes one connection and says nothing.
func (c *scene) silence(path string) (asked <-chan struct{}, hangUp func()) {
	c.Helper()
	l, err := net.Listen("unix", path)
	c.must(err)
	came := make(chan struct{})
	conns := make(chan net.Conn, 1)
	go func() { // joined by hangUp
		defer close(conns)
		if conn, err := l.Accept(); err == nil {
			close(came)
			conns <- conn
		}
	}()
	hangUp = sync.OnceFunc(func() {
		l.Close()
		for conn := range conns {
			conn.Close()
		}
	})
	c.Cleanup(hangUp)
	return came, hangUp
}

func parentKilledInInit(c *scene) {
	c.begin()
	answer := c.slowNewcomer()
	c.shoot(0, syscall.SIGKILL)
	c.logs(crashed)
	c.marker("while nothing is committed", false)
	answer()
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

func parentKilledInPlainInit(c *scene) {
	c.begin()
	c.slowNewcomer()
	c.shoot(0, syscall.SIGKILL)
}

func parentKilledWithheld(c *scene) {
	open := c.beginWithheld()
	c.shoot(0, syscall.SIGKILL)
	c.logs(crashed)
	open()
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

func parentKilledAtCommit(c *scene) {
	var parent int
	c.onLine("epoch serves", 1, func(node.Line) {
		c.strike()
		_ = syscall.Kill(parent, syscall.SIGKILL)
	})
	c.begin()
	parent = c.status().Of(0).PID
	c.hup()
	c.await("epoch 1 to serve alone", node.Alone(1))
	c.over()
}

// draining hands over to epoch 1 before the load begins, so that nothing but one
// stream is epoch 0's.
func (c *scene) draining(args ...string) *stream {
	c.Helper()
	c.raise(args...)
	c.await("epoch 0 to serve", node.Serves(0))
	held := c.stream()
	c.hup()
	c.await("epoch 0 to drain", func(st node.Status) bool { return node.Serves(1)(st) && inState(0, "draining")(st) })
	c.loadWith(c.plan())
	c.until("the load to run", func() bool { return c.load.Snapshot().OK() > 100 })
	return held
}

func parentKilledDraining(c *scene) {
	held := c.draining()
	c.shoot(0, syscall.SIGKILL)
	c.await("epoch 1 alone", node.Alone(1))
	c.over()
	c.until("the end of its stream", held.isOver)
	c.adminAnswers()
	c.note = "its one stream ended with it"
}

// adminAnswers past the next stats flush: the newcomer didn't hang in one.
func (c *scene) adminAnswers() {
	c.Helper()
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		if err := c.askAdmin(5 * time.Second); err != nil {
			c.Fatalf("the admin: %v", err)
		}
	}
}

// askAdmin asks whoever serves, within a time.
func (c *scene) askAdmin(within time.Duration) error {
	ctx, cancel := context.WithTimeout(c.ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.Bootstrap.Admin+"/ready", nil)
	if err != nil || c.flag == own { // that one is not where the bootstrap says
		return err
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

func parentKilledInPlain(c *scene) {
	c.begin("--parent-shutdown-time", "60s", "--drain-time", "1s")
	c.stream()
	c.hup()
	c.await("epoch 1 to serve", node.Serves(1))
	c.shoot(0, syscall.SIGKILL)
}

func parentStoppedAndKilled(c *scene) { parentStoppedUntil(c, syscall.SIGKILL) }

// parentStoppedDraining: the newcomer asks for the parent's stats every 5 s.
func parentStoppedDraining(c *scene) {
	held := c.draining()
	parent := c.status().Of(0).PID
	c.kill(parent, syscall.SIGSTOP)
	c.until("the newcomer to hang in its request", func() bool { return c.askAdmin(time.Second) != nil })
	c.strike()
	c.kill(parent, syscall.SIGKILL)
	c.until("its admin to answer", func() bool { return c.askAdmin(time.Second) == nil })
	c.over()
	c.until("the end of the stream", held.isOver)
}

// parentStoppedForGood: each stats flush of the epoch that serves asks it.
func parentStoppedForGood(c *scene) {
	held := c.draining()
	parent := c.status().Of(0).PID
	c.strike()
	c.kill(parent, syscall.SIGSTOP)
	c.logs("the parent does not answer")
	c.until("its child's admin to answer", func() bool { return c.askAdmin(time.Second) == nil })
	c.over()
	for end := time.Now().Add(12 * time.Second); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		if err := c.askAdmin(time.Second); err != nil {
			c.Fatalf("the admin hangs again: %v", err)
		}
	}
	c.kill(parent, syscall.SIGCONT)
	c.flows(held)
	held.conn.Close()
}

func oddOrder(c *scene) {
	c.begin()
	var held []*stream
	for epoch := 1; epoch <= 2; epoch++ {
		held = append(held, c.stream())
		c.write(fmt.Sprintf("v%d", epoch+1))
		c.hup()
		c.await("the next epoch", node.Serves(epoch))
	}
	committed := time.Now()
	c.strike()
	held[1].conn.Close() // the middle one first
	c.await("epoch 1 to end", func(st node.Status) bool { return st.Of(1) == nil })
	c.await("epoch 0 to end", node.Alone(2))
	c.over()
	// Deadline + limit + 10 s after LIVE.
	c.stays(time.Until(committed.Add(20*time.Second)), "it serves alone", func(st node.Status) bool { return node.Alone(2)(st) && st.Ready })
}

// newestAlone: the marker is gone when the log says so.
func newestAlone(c *scene) {
	c.onLine(crashed, 0, func(node.Line) {
		if c.markerFresh() {
			c.Error("the marker is still there")
		}
	})
	c.begin()
	c.until("the load to run", func() bool { return c.load.Snapshot().OK() > 100 })
	c.shoot(0, syscall.SIGKILL)
}

func crashLoop(c *scene) {
	c.draining()
	for range 3 {
		c.respawned(c.shoot(1, syscall.SIGKILL))
	}
	c.overAt = time.Time{}
	c.shoot(1, syscall.SIGKILL)
}
