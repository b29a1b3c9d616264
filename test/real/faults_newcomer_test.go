package real

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"aether.internal/test/node"
)

const (
	takenBack = "newcomer is taken back"
	repaired  = "the shared segment's flag is cleared"
	refusedIt = "restart refused"
	crashed   = "the serving epoch ended by itself"
	again     = "the epoch is started again at the same number"

	itsOwn  = "only what the killed process was answering"
	untilUp = "what the killed process was answering, and whoever came before the same epoch was LIVE again: its parent no longer listens"
)

// newcomerFaults: only the newcomer ends; whoever serves goes on.
func newcomerFaults() []fault {
	rows := slices.Concat(
		fault{name: "exits at once with code 1", play: exits1, said: []string{takenBack, "the newcomer ended by itself (exit code 1)"}, unsaid: []string{repaired}}.by(shared, own, plain),
		fault{name: "is killed before it is LIVE", play: killedBeforeLive, said: []string{takenBack, "signal 9 (SIGKILL)", repaired, adminLost}}.by(shared, own, plain),
		killedUnverified(),
		fault{name: "is killed while it is being verified for good", play: killedByItsCheck, harm: untilUp, dark: true, said: []string{"signal 9 (SIGKILL)"}}.by(shared),
		fault{name: "is killed at the moment of the commit", play: killedAtCommit, harm: untilUp, dark: true, said: []string{crashed, again}}.by(shared, own, plain),
		fault{name: "is killed after the commit, while its parent drains", play: killedAfterCommit, harm: untilUp, dark: true, said: []string{crashed, again}}.by(shared, own, plain),
		fault{name: "is not LIVE by the deadline", play: neverLive, args: []string{"--handoff-deadline", "2s"}, said: []string{takenBack, "not LIVE after 2", repaired, adminLost}}.by(shared, own, plain),
		fault{name: "wants a port that is busy", play: wantsBusyPort, said: []string{takenBack, "exit code 1", repaired, adminLost}}.by(shared, own, plain),
		fault{name: "finds no certificate", play: findsNoCertificate, said: []string{takenBack, "exit code 1", repaired, adminLost}}.by(shared, own, plain),
		fault{name: "is half a binary", play: halfBinary, said: []string{refusedIt, "open the Envoy binary"}}.by(shared),
		fault{name: "is built for another machine", play: foreignBinary, said: []string{refusedIt, "is built for"}}.by(shared),
		fault{name: "has another hot-restart version", play: otherProtocol, said: []string{refusedIt, "they can't hand over"}}.by(shared),
		fault{name: "hangs on a stopped parent, which goes on in time", play: parentStopped, said: []string{"epoch serves"}, unsaid: []string{takenBack}}.by(shared, plain),
		fault{name: "hangs on a stopped parent until the deadline", play: parentStoppedTooLong, args: []string{"--handoff-deadline", "2s"}, said: []string{takenBack, "not LIVE after 2"}}.by(shared, plain),
		fault{name: "is killed while it waits for a stopped parent, and so does the next", play: killedWaiting, said: []string{takenBack, "epoch serves"}, unsaid: []string{crashed}}.by(shared, own, plain),
	)
	return inGroup("The newcomer", rows)
}

func inGroup(group string, rows []fault) []fault {
	for i := range rows {
		rows[i].group = group
	}
	return rows
}

// killedUnverified: plain mode has no LIVE newcomer that isn't committed, so
// there it is the next row.
func killedUnverified() []fault {
	f := fault{name: "is killed LIVE and not verified", play: killedWithheld, harm: itsOwn, said: []string{takenBack, "signal 9 (SIGKILL)", adminLost}}
	return f.by(shared, own)
}

// spoiled is a file that, while it is there, makes epochs after the first do
// what lines say instead of running Envoy.
func (c *scene) spoiled(lines string) (spoil, heal func()) {
	path := filepath.Join(c.Dir, "spoiled")
	c.wrapEnvoy(`case "$*" in *validate*|*"--restart-epoch 0"*) ;; *--restart-epoch*) if [ -e ` + path + ` ]; then ` + lines + `; fi;; esac`)
	return func() { c.touch(path) }, func() { c.must(os.Remove(path)) }
}

func exits1(c *scene) {
	spoil, heal := c.spoiled("exit 1")
	c.begin()
	spoil()
	c.strike()
	c.hup()
	c.goesOn(1)
	heal()
}

// inInit brings a newcomer into its initialisation, where it waits for a
// control plane that says nothing.
func (c *scene) inInit() (leave func()) {
	c.Helper()
	asked := c.silentControlPlane()
	c.write("waits")
	c.hup()
	c.until("the newcomer to be in init", func() bool { return asked.Load() > 0 })
	c.await("its process", inState(1, "starting"))
	return func() { c.Bootstrap.XDS = "" }
}

func killedBeforeLive(c *scene) {
	c.begin()
	leave := c.inInit()
	c.shoot(1, syscall.SIGKILL)
	c.goesOn(1)
	leave()
}

func (c *scene) beginWithheld(args ...string) (open func()) {
	verify, gate := c.withheld()
	c.begin(append(args, "--verify-command", verify)...)
	c.hup()
	c.await("epoch 1 to be withheld", inState(1, "live"))
	return func() { c.touch(gate) }
}

func killedWithheld(c *scene) {
	open := c.beginWithheld()
	c.shoot(1, syscall.SIGKILL)
	c.goesOn(1)
	open()
}

// killedByItsCheck: the user's command succeeds, and kills. Which of the two
// the supervisor hears of first is open.
func killedByItsCheck(c *scene) {
	shots := filepath.Join(c.Dir, "shots")
	verify := c.script("verify", `[ "$AETHER_EPOCH" = 0 ] && exit 0; [ ! -e `+shots+` ] || exit 0
for p in /proc/[0-9]*; do case "$(tr '\0' ' ' <$p/cmdline 2>/dev/null)" in *"--restart-epoch 1"*"`+c.StateDir+`"*) touch `+shots+`; kill -9 ${p#/proc/};; esac; done
exit 0`)
	c.begin("--verify-command", verify)
	c.strike()
	c.hup()
	c.until("the shot", func() bool { return len(exists(shots)) > 0 })
	c.until("the end of it", func() bool {
		return c.run.Logged("the serving epoch goes on")+c.run.Logged(again) > 0 && c.status().Ready
	})
	c.over()
}

// killedAtCommit kills upon the very line that tells of the commit.
func killedAtCommit(c *scene) {
	shot := make(chan int, 1)
	c.onLine("epoch serves", 1, func(l node.Line) {
		c.strike()
		_ = syscall.Kill(pidIn(l), syscall.SIGKILL)
		shot <- pidIn(l)
	})
	c.begin()
	c.hup()
	c.respawned(<-shot)
}

// respawned waits until epoch 1 serves with another process than that one.
func (c *scene) respawned(dead int) {
	c.Helper()
	c.await("epoch 1 to serve again", func(st node.Status) bool {
		e := st.Of(1)
		return node.Serves(1)(st) && e != nil && e.PID != dead && e.PID > 0
	})
	c.over()
}

func killedAfterCommit(c *scene) {
	held := c.draining()
	c.respawned(c.shoot(1, syscall.SIGKILL))
	c.flows(held)
	held.conn.Close()
}

func neverLive(c *scene) {
	c.begin()
	leave := c.inInit()
	c.strike()
	c.goesOn(1)
	leave()
}

func wantsBusyPort(c *scene) {
	c.begin()
	heal := busyPort(c.stage)
	c.strike()
	c.hup()
	c.goesOn(1)
	heal()
}

func findsNoCertificate(c *scene) {
	c.wrapEnvoy(`case "$*" in *validate*|*"--restart-epoch 0"*) ;; *) [ ! -e ` + c.Dir + `/gone ] || rm -f ` + c.Bootstrap.Certificate.CertPath + `;; esac`)
	c.begin()
	heal := certificateGone(c.stage)
	c.strike()
	c.hup()
	c.goesOn(1)
	heal()
}

// refuses puts another binary into place and wants no fork.
func (c *scene) refuses(data []byte) {
	c.begin()
	c.binary(data, 0o755)
	c.refusesIt()
}

func (c *scene) refusesIt() {
	c.strike()
	c.hup()
	c.logs(refusedIt)
	c.over()
	if st := c.status(); len(st.Epochs) != 1 || !st.Ready {
		c.Errorf("%+v", st)
	}
	c.must(c.InstallEnvoy(c.ctx, ""))
}

func halfBinary(c *scene) {
	whole, err := os.ReadFile(c.EnvoyPath)
	c.must(err)
	c.refuses(whole[:len(whole)/2])
}

func foreignBinary(c *scene) { c.refuses(foreignELF()) }

func otherProtocol(c *scene) {
	c.begin()
	c.wrapEnvoy(`case "$*" in *--hot-restart-version*) echo 99.1 >&2; exit 0;; esac`)
	c.refusesIt()
}

// The parent serves, so clients wait as long as it is stopped; connections
// queue in the kernel.
func parentStopped(c *scene) { parentStoppedUntil(c, syscall.SIGCONT) }

// waitForStopped stops the parent and has a newcomer wait for it.
func (c *scene) waitForStopped() (parent int) {
	c.Helper()
	c.begin()
	parent = c.status().Of(0).PID
	c.strike()
	c.kill(parent, syscall.SIGSTOP)
	c.hup()
	c.await("epoch 1 to start", inState(1, "starting"))
	c.stays(500*time.Millisecond, "it waits", inState(1, "starting"))
	return parent
}

func parentStoppedUntil(c *scene, end syscall.Signal) {
	c.kill(c.waitForStopped(), end)
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

// killedWaiting: the parent's answer comes when somebody else waits for one.
func killedWaiting(c *scene) {
	parent := c.waitForStopped()
	c.kill(c.status().Of(1).PID, syscall.SIGKILL)
	c.goesOn(1)
	c.hup()
	c.await("epoch 1 to be tried again", func(st node.Status) bool { return st.Of(1) != nil })
	c.stays(3*time.Second, "nobody takes over", node.Serves(0))
	c.kill(parent, syscall.SIGCONT)
	c.await("epoch 1 to serve", node.Serves(1))
	c.over()
}

func parentStoppedTooLong(c *scene) {
	c.begin()
	parent := c.status().Of(0).PID
	c.strike()
	c.kill(parent, syscall.SIGSTOP)
	c.hup()
	c.goesOn(1) // plain: a parent that goes on a moment before has a newcomer that commits itself
	c.kill(parent, syscall.SIGCONT)
}
