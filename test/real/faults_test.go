package real

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// The bad days of one container, each a row of docs/faults.md: what is done to
// a running node, what its clients saw, what the supervisor said, how long it
// took. Rows are in faults_<group>_test.go; the table is made by
//
//	go test ./test/real -run TestFaults -update
var update = flag.Bool("update", false, "write what was measured to "+faultsDoc)

// Flags under which a fault is played again, where they make a difference.
const (
	shared = ""                  // one admin, relayed: the defaults
	own    = "--admin-per-epoch" // each epoch has an admin
	plain  = "--relay=false"     // Envoy's own hot restart
)

// fault is one row.
type fault struct {
	group, name string
	flag        string // shared, own, plain, or what else makes the row
	args        []string
	// harm is why clients notice although all is done that Envoy allows;
	// "" wants 0 failures.
	harm string
	dark bool // for a time nothing listens: connections may be refused
	// said is what the log must have; unsaid what it must not.
	said, unsaid []string
	ends         int // the exit code, where nothing is left that serves
	needs        func() string
	play         func(*scene)
}

// asRoot is for rows that only root can play.
func asRoot() string {
	if os.Geteuid() != 0 {
		return "only root can do this"
	}
	return ""
}

const adminLost = "the serving epoch has lost its admin to the newcomer"

// by gives the row once for each flag. The admin that epochs share is lost to a
// newcomer that came as far as to ask for it; in plain mode nobody knows.
func (f fault) by(flags ...string) []fault {
	var rows []fault
	for _, flag := range flags {
		row := f
		row.flag = flag
		row.said, row.unsaid = slices.Clone(f.said), slices.Clone(f.unsaid)
		if flag == own {
			row.said = without(row.said, adminLost)
			row.unsaid = append(row.unsaid, adminLost)
		}
		rows = append(rows, row)
	}
	return rows
}

func without(all []string, one string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == one })
}

func faults() []fault {
	return slices.Concat(newcomerFaults(), parentFaults(), supervisorFaults(), resourceFaults())
}

func (f fault) title() string { return strings.TrimSpace(f.name + " " + f.flag) }

func TestFaults(t *testing.T) {
	t.Cleanup(func() { writeMeasured(t) }) // when all parallel rows have ended
	for _, f := range faults() {
		t.Run(f.group+"/"+f.title(), func(t *testing.T) {
			t.Parallel()
			if why := f.cannot(); why != "" {
				record(measured{Group: f.group, Name: f.name, Flag: f.flag, Skipped: why})
				t.Skip(why)
			}
			c := &scene{stage: newStage(t), fault: f}
			f.play(c)
			c.finish()
		})
	}
}

func (f fault) cannot() string {
	if f.needs == nil {
		return ""
	}
	return f.needs()
}

// scene is a fault being played.
type scene struct {
	*stage
	fault
	struck   time.Time // when the fault was done
	overAt   time.Time // when the supervisor had dealt with it
	next     time.Duration
	note     string // a measure of this row's own
	settled  bool   // finish has nothing to add: the supervisor is as it shall be
	exitCode int
	see      func(node.Line)
	through  []string
	spaces   uintptr
	report   *load.Report
}

// begin starts the supervisor with the row's flags, and the load.
func (c *scene) begin(args ...string) {
	c.Helper()
	c.raise(args...)
	c.await("epoch 0 to serve", node.Serves(0))
	c.loadWith(c.plan())
}

// raise starts the supervisor and waits for nothing.
func (c *scene) raise(args ...string) {
	c.Helper()
	if c.flag != "" && strings.HasPrefix(c.flag, "--") {
		args = append(strings.Fields(c.flag), args...)
	}
	if c.flag == plain { // the next handoff waits for Envoy's own timer
		args = append([]string{"--drain-time", "1s", "--parent-shutdown-time", "6s"}, args...)
	} else { // far away: nothing but idleness ends a parent, however busy the machine is
		args = append([]string{"--parent-shutdown-time", "60s"}, args...)
	}
	c.run = &node.Run{Node: c.Node, OnLine: c.see, Through: c.through, Namespaces: c.spaces}
	if i := slices.Index(args, "--"); i >= 0 { // the row's own before Envoy's
		args = slices.Insert(args, i, c.args...)
	} else {
		args = append(args, c.args...)
	}
	if err := c.run.Start(c.ctx, append([]string{"--watch-config=false"}, args...)...); err != nil {
		c.Fatal(err)
	}
}

// plan is all kinds of load, about 100 operations a second, and new connections
// often enough to see how long nobody answered.
func (c *scene) plan() load.Plan {
	plan := quiet(c.Target())
	for i := range plan.Kinds {
		plan.Kinds[i].Rate = max(plan.Kinds[i].Rate*0.6, 1)
	}
	plan.Kinds[0].Rate = 40
	plan.Timeout = 30 * time.Second
	return plan
}

// strike notes the moment of the fault.
func (c *scene) strike() { c.struck = time.Now() }

func (c *scene) shoot(epoch int, sig syscall.Signal) int {
	c.Helper()
	pid := c.status().Of(epoch).PID
	c.strike()
	c.kill(pid, sig)
	return pid
}

// over notes that the supervisor has dealt with the fault.
func (c *scene) over() { c.overAt = time.Now() }

// goesOn waits until a newcomer has been taken back, the n-th.
func (c *scene) goesOn(n int) {
	c.Helper()
	c.until("the serving epoch to go on", func() bool { return c.run.Logged("the serving epoch goes on") >= n })
	c.over()
	st := c.status()
	if !st.Ready || !c.markerFresh() {
		c.Errorf("not ready after the fault: %+v", st)
	}
}

// finish wants the next handoff to work, or the end that the row says, then
// judges clients and log.
func (c *scene) finish() {
	c.Helper()
	switch {
	case c.ends != 0:
		c.endWith(c.ends)
	case !c.settled:
		c.handOver("good")
	}
	c.judgeClients()
	c.judgeLog()
	if c.ends == 0 && !c.settled {
		c.stop()
	}
	c.nothingLeft()
	if !c.Failed() {
		record(c.measured())
	}
}

func (c *scene) endWith(code int) {
	c.Helper()
	c.exit(code)
	if c.overAt.IsZero() {
		c.over()
	}
	c.exitCode = code
}

// handOver writes a good bootstrap and waits until it serves, alone answering.
func (c *scene) handOver(tag string) {
	c.Helper()
	began := time.Now()
	c.write(tag)
	c.hup()
	// Tests in parallel link the same binary: its ctime changes.
	busy := func() int { return c.run.Logged("changed while it was read") }
	seen := busy()
	c.until("the next handoff", func() bool {
		if n := busy(); n > seen {
			seen = n
			c.hup()
		}
		return c.tag() == tag
	})
	st := c.await("its epoch to serve", func(st node.Status) bool { return st.Ready && st.Serving >= 0 && st.Of(st.Serving) != nil })
	if !c.markerFresh() {
		c.Errorf("not ready after the next handoff: %+v", st)
	}
	c.next = time.Since(began)
}

func (c *scene) judgeClients() {
	c.Helper()
	if c.load == nil {
		return
	}
	if c.harm == "" {
		r := c.unharmed()
		c.report = &r
		return
	}
	r := c.load.Stop()
	c.report, c.load = &r, nil
	c.Logf("%d of %d failed: %s", r.Failures(), r.Started(), c.harm)
	for _, k := range r.Kinds {
		if k.Wrong > 0 || !c.dark && k.Refused+k.Timeout > 0 {
			c.Errorf("%s (tls %t): %d wrong, %d refused, %d timed out", k.Kind, k.TLS, k.Wrong, k.Refused, k.Timeout)
		}
	}
	if c.Failed() {
		c.Log("\n" + r.Table())
	}
}

func (c *scene) judgeLog() {
	c.Helper()
	log := []byte(c.run.Log())
	for _, text := range c.said {
		if !bytes.Contains(log, []byte(text)) {
			c.Errorf("the log has no %q", text)
		}
	}
	for _, text := range c.unsaid {
		if bytes.Contains(log, []byte(text)) {
			c.Errorf("the log has %q", text)
		}
	}
}

// gap is the longest time in which no new connection was answered; about 25 ms
// is what the load's rate leaves by itself.
func (c *scene) gap() time.Duration {
	return cmp.Or(c.report.Kind(load.New, false).LongestGap, time.Duration(0))
}

func (c *scene) measured() measured {
	m := measured{
		Group: c.group, Name: c.name, Flag: c.flag, Said: c.said, Harm: c.harm, Note: c.note,
		Exit: c.exitCode, NextMS: c.next.Milliseconds(),
	}
	if !c.struck.IsZero() && !c.overAt.IsZero() {
		m.OverMS = c.overAt.Sub(c.struck).Milliseconds()
	}
	if c.report != nil {
		m.Operations, m.Failed, m.GapMS = c.report.Started(), c.report.Failures(), c.gap().Milliseconds()
	}
	return m
}

// onLine has f called once, when the supervisor says text about an epoch.
func (c *scene) onLine(text string, epoch int, f func(node.Line)) {
	done := false
	c.see = func(l node.Line) { // all on one goroutine
		if !done && l.Source == "" && l.Epoch == epoch && strings.Contains(l.Message, text) {
			done = true
			f(l)
		}
	}
}

// pidIn is the process that a line names.
func pidIn(l node.Line) int {
	var pid int
	_, after, _ := strings.Cut(l.Raw, `"pid":`)
	fmt.Sscanf(after, "%d", &pid)
	return pid
}
