package real

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"aether.internal/test/node"
)

// supervisorFaults happen to the relays' and the Envoys' own supervisor.
func supervisorFaults() []fault {
	rows := slices.Concat(
		fault{name: "is stopped for 5 s, idle", play: stoppedIdle}.by(shared),
		fault{name: "is stopped for 5 s while a newcomer initialises", play: stoppedInInit, said: []string{"epoch serves"}, unsaid: []string{takenBack}}.by(shared, own, plain),
		fault{name: "is stopped for 5 s while a newcomer is withheld", play: stoppedWithheld, said: []string{"epoch serves"}, unsaid: []string{takenBack}}.by(shared),
		fault{name: "is stopped for 5 s, and a newcomer dies that waits for its parent's answer", play: stoppedAndOrphaned, said: []string{takenBack}, unsaid: []string{crashed}}.by(shared, plain),
		fault{name: "is stopped for 5 s while a parent is released", play: stoppedInRelease, said: []string{"old epoch is ended"}}.by(shared),
		fault{name: "SIGTERM to the whole process group", play: groupTerminated, args: []string{"--drain-time", "9s", "--parent-shutdown-time", "20s"}, said: []string{"stopping", "drained: no connection is left"}}.by(shared),
		fault{name: "nobody reads its output for 10 s, over two handoffs", play: outputBlocked, said: []string{"dropped"}}.by(shared),
		fault{name: "the relay gets what it doesn't know", play: strangeDatagrams, said: []string{"epoch serves"}, unsaid: []string{takenBack, crashed}}.by(shared),
	)
	return inGroup("Relay and supervisor", rows)
}

// stopped stops the supervisor for a while, which is the fault itself.
func (c *scene) stopped(d time.Duration) {
	c.Helper()
	c.strike()
	c.kill(c.run.Cmd.Process.Pid, syscall.SIGSTOP)
	<-time.After(d)
	c.kill(c.run.Cmd.Process.Pid, syscall.SIGCONT)
}

func stoppedIdle(c *scene) {
	c.begin()
	c.stopped(5 * time.Second)
	c.await("it to answer", node.Alone(0))
	c.over()
}

func stoppedInInit(c *scene) {
	started := make(chan struct{})
	c.onLine("newcomer started", 1, func(node.Line) { close(started) })
	c.begin()
	c.hup()
	<-started
	c.stopped(5 * time.Second)
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

func stoppedWithheld(c *scene) {
	open := c.beginWithheld()
	c.stopped(5 * time.Second)
	open()
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

// stoppedAndOrphaned: the parent's answer finds neither newcomer nor supervisor.
func stoppedAndOrphaned(c *scene) {
	parent := c.waitForStopped()
	newcomer := c.status().Of(1).PID
	go func() { // ends long before stopped does
		<-time.After(time.Second)
		_ = syscall.Kill(newcomer, syscall.SIGKILL)
		_ = syscall.Kill(parent, syscall.SIGCONT)
	}()
	c.stopped(5 * time.Second)
	c.goesOn(1)
}

func stoppedInRelease(c *scene) {
	c.begin()
	c.hup()
	c.await("epoch 1 to serve", node.Serves(1))
	c.stopped(5 * time.Second)
	c.await("epoch 0 to end", node.Alone(1))
	c.over()
}

// groupTerminated: a stop that drains is all that the clients get.
func groupTerminated(c *scene) {
	c.begin()
	c.until("the load to run", func() bool { return c.load.Snapshot().OK() > 200 })
	c.strike()
	c.kill(-c.run.Cmd.Process.Pid, syscall.SIGTERM) // it leads its session
	report := c.unharmed()
	c.report = &report
	c.exit(0)
	c.over()
	c.settled = true
}

func outputBlocked(c *scene) {
	var reading sync.Mutex // held while nobody reads
	c.see = func(node.Line) {
		reading.Lock()
		defer reading.Unlock()
	}
	c.begin("--", "--component-log-level", "connection:debug,http:debug")
	began := time.Now()
	c.strike()
	reading.Lock()
	for epoch := 1; epoch <= 2; epoch++ {
		c.write(fmt.Sprintf("v%d", epoch+1))
		c.hup()
		c.await("the next epoch", node.Serves(epoch))
	}
	<-time.After(time.Until(began.Add(10 * time.Second)))
	if code, out := c.proxyctl("status"); code != 0 {
		c.Errorf("proxyctl status: exit code %d: %s", code, out)
	}
	c.over()
	reading.Unlock()
	c.logs("dropped")
}

// strangeDatagrams are sent to a relay while it withholds: of a kind that is
// none, and as well-formed requests that Envoy may have one day.
func strangeDatagrams(c *scene) {
	open := c.beginWithheld()
	// The name of epoch 0 under the path of epoch 1.
	relay := filepath.Join(c.StateDir, "seat.1", fmt.Sprintf("hr_parent_%d0", c.BaseID))
	conn, err := net.Dial("unixgram", relay)
	c.must(err)
	defer conn.Close()
	c.strike()
	for range 20 {
		for _, d := range strange {
			c.until("the relay to take one more", func() bool { _, err := conn.Write(d); return err == nil })
		}
	}
	c.over()
	open()
	c.await("epoch 1 to serve", node.Serves(1))
}

var strange = [][]byte{
	{},
	[]byte("hello"),
	{0, 0, 0, 0, 0, 0, 0, 9, 0x0a}, // shorter than it says
	{0, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff},                          // no message
	{0, 0, 0, 0, 0, 0, 0, 4, 0x12, 2, 0x1a, 0},                          // an answer
	append([]byte{0, 0, 0, 0, 0, 0, 0x0f, 0xf8}, make([]byte, 4088)...), // as long as can be
}
