package real

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

const aMinute = "60s"

// surge is an old pod that serves, and a new one that isn't started.
func surge(t *testing.T, args ...string) (a, b *stage) {
	a = newStage(t)
	a.startPatient(args...)
	return a, a.pod("b")
}

// withheldPod starts b with a verify command that doesn't pass before the gate
// is there: LIVE, and not committed.
func (b *stage) withheldPod(args ...string) (gate string) {
	b.Helper()
	gate = filepath.Join(b.Dir, "gate-"+filepath.Base(filepath.Dir(filepath.Dir(b.Control))))
	script := b.script("verify-b", `[ -e `+gate+` ]`)
	b.launch(append([]string{"--verify-command", script, "--parent-shutdown-time", aMinute}, args...)...)
	b.await("the newcomer to be LIVE", func(st node.Status) bool {
		return len(st.Epochs) == 2 && st.Epochs[1].State == "live"
	})
	return gate
}

func TestTheOldPodIsAskedToStopWhileItIsContested(t *testing.T) {
	a, b := surge(t)
	a.mixed(300 * time.Millisecond)
	gate := b.withheldPod()
	a.await("the old pod to be contested", state("contested"))
	a.marker("while contested", true)
	a.signal(syscall.SIGTERM) // deleted although the new pod isn't ready
	a.await("the stop to wait", state("waiting"))
	a.stays(2*time.Second, "the old pod serves on", func(st node.Status) bool { return st.State == "waiting" && st.Serving == 0 })
	b.touch(gate)
	b.await("epoch 1 to serve", node.Serves(1))
	a.exit(0)
	a.unharmed()
	b.stop()
}

func TestTheOldPodIsAskedToStopBeforeASuccessorCame(t *testing.T) {
	a, b := surge(t, "--successor-wait", "40s")
	a.mixed(300 * time.Millisecond)
	a.signal(syscall.SIGTERM)
	a.await("the stop to wait", state("waiting"))
	b.takesOver(1)
	a.exit(0)
	a.unharmed()
	b.stop()
}

func TestNoSuccessorComes(t *testing.T) {
	a, _ := surge(t, "--successor-wait", "2s")
	a.signal(syscall.SIGTERM)
	a.await("the stop to wait", state("waiting"))
	if got := a.tag(); got != "v1" {
		t.Errorf("answered %q", got)
	}
	a.exit(0)
	a.inOrder("asked to stop; our epoch serves on", "no successor has taken over")
	a.nothingLeft()
}

func TestASecondSignalWaitsForNoSuccessor(t *testing.T) {
	a, _ := surge(t, "--successor-wait", "10m")
	a.signal(syscall.SIGTERM)
	a.await("the stop to wait", state("waiting"))
	a.stop()
	a.nothingLeft()
}

// The kubelet's SIGKILL at the end of the grace period, with the successor
// attached: its relay answers in the dead parent's place.
func TestTheOldPodIsKilledAfterTheTakeover(t *testing.T) {
	a, b := surge(t)
	held := a.stream()
	b.takesOver(1)
	a.await("the old pod to be superseded", state("superseded"))
	a.run.Kill()
	a.run = nil
	a.until("the stream of the killed pod to be cut", held.isOver)
	b.await("the predecessor to be gone", node.Alone(1))
	b.mixed(300 * time.Millisecond)
	b.stays(12*time.Second, "epoch 1 goes on without its parent", node.Serves(1)) // longer than its retries (fact 4)
	b.unharmed()
	b.hup()
	b.await("epoch 2 to serve", node.Serves(2))
	b.stop()
	b.nothingLeft()
}

func TestTheOldPodIsKilledWhileTheNewcomerIsWithheld(t *testing.T) {
	a, b := surge(t)
	gate := b.withheldPod()
	a.run.Kill()
	a.run = nil
	if got := b.tag(); got != "b" { // it accepts already
		t.Errorf("answered %q", got)
	}
	b.touch(gate)
	b.await("epoch 1 to serve", node.Serves(1))
	b.stop()
	b.nothingLeft()
}

func TestTheNewPodIsKilledBeforeItsCommit(t *testing.T) {
	a, b := surge(t)
	b.withheldPod()
	a.await("the old pod to be contested", state("contested"))
	a.mixed(300 * time.Millisecond)
	b.load = nil
	b.killPod()
	a.await("the old pod to go on", state("serving"))
	a.load.Stop() // what the killed newcomer had accepted is cut
	a.load = nil
	a.mixed(300 * time.Millisecond)
	a.write("v2") // and its handoffs work again
	a.await("a later epoch to serve", func(st node.Status) bool { return st.Serving >= 1 && st.Ready })
	a.awaitTag("v2")
	a.unharmed()
	a.stop()
	a.nothingLeft()
}

// While the newcomer is still initialising the segment says so, and nobody but
// the old pod is left to clear that.
func TestTheNewPodIsKilledBeforeItsEnvoyIsLIVE(t *testing.T) {
	a := newStage(t)
	a.startPatient()
	b := a.pod("b")
	b.silentControlPlane()
	b.write("b")
	b.launch()
	a.await("the old pod to be contested", state("contested"))
	a.mixed(300 * time.Millisecond)
	b.run.Kill()
	b.run = nil
	a.await("the old pod to go on", state("serving"))
	a.logs("the shared segment's flag is cleared")
	a.write("v2")
	a.await("epoch 1 to serve", node.Serves(1))
	a.unharmed()
	a.stop()
	a.nothingLeft()
}

func TestTheNewPodNeverGetsLIVE(t *testing.T) {
	a := newStage(t)
	a.startPatient()
	a.mixed(300 * time.Millisecond)
	b := a.pod("b")
	b.silentControlPlane()
	b.write("b")
	b.launch("--handoff-deadline", "3s")
	b.exit(5)
	a.await("the old pod to go on", state("serving"))
	a.write("v2")
	a.await("epoch 1 to serve", node.Serves(1))
	a.unharmed()
	a.stop()
	a.nothingLeft()
}

func TestTheNewPodsEnvoyDiesAfterTheTakeover(t *testing.T) {
	a, b := surge(t)
	held := a.stream() // the old epoch drains
	b.takesOver(1)
	a.await("the old pod to be superseded", state("superseded"))
	pid := b.status().Of(1).PID
	dark := b.seesDark()
	b.kill(pid, syscall.SIGKILL)
	b.await("epoch 1 to serve again", func(st node.Status) bool { return st.Serving == 1 && st.Ready && st.Of(1).PID != pid })
	t.Logf("dark for %v", dark.over())
	a.stays(2*time.Second, "the old pod stays superseded", state("superseded"))
	a.flows(held)
	held.conn.Close()
	a.stop()
	b.stop()
	b.nothingLeft()
}

func TestTheNewPodIsKilledAfterTheTakeover(t *testing.T) {
	a, b := surge(t)
	held := a.stream()
	b.takesOver(1)
	a.await("the old pod to be superseded", state("superseded"))
	dark := a.seesDark()
	b.killPod()
	a.await("the old pod to serve again", node.Serves(1))
	t.Logf("dark for %v", dark.over())
	a.marker("after it took the node back", true)
	a.flows(held)
	held.conn.Close()
	a.await("the oldest epoch to end", node.Alone(1))
	a.stop()
	a.nothingLeft()
}

// Its Envoy goes on for ten seconds (fact 4) and serves: nobody is to be taken
// over from before that.
func TestTheNewPodsSupervisorIsKilledAfterTheTakeover(t *testing.T) {
	a, b := surge(t)
	held := a.stream()
	b.takesOver(1)
	a.await("the old pod to be superseded", state("superseded"))
	dark := a.seesDark()
	b.run.Kill()
	b.run = nil
	a.await("the old pod to serve again", node.Serves(1))
	t.Logf("dark for %v", dark.over())
	a.flows(held)
	held.conn.Close()
	a.stop()
	a.nothingLeft()
}

// Its own epoch has ended by then: it starts from nothing.
func TestTheNewPodIsKilledAndTheOldOneHasNoEpochLeft(t *testing.T) {
	a, b := surge(t)
	b.takesOver(1)
	a.await("the old epoch to have drained", func(st node.Status) bool { return len(st.Epochs) == 0 })
	dark := a.seesDark()
	b.killPod()
	a.await("the old pod to serve again", node.Serves(0))
	t.Logf("dark for %v", dark.over())
	a.stop()
	a.nothingLeft()
}

func TestTheNewPodIsStoppedAfterTheTakeover(t *testing.T) {
	a, b := surge(t)
	held := a.stream()
	b.takesOver(1)
	a.await("the old pod to be superseded", state("superseded"))
	dark := a.seesDark()
	b.stop()
	a.await("the old pod to serve again", node.Serves(1))
	t.Logf("dark for %v", dark.over())
	a.flows(held)
	held.conn.Close()
	a.stop()
	a.nothingLeft()
}

// The kubelet restarts the new pod's container while the old pod is stopping,
// as it is once the new one was ready.
func TestTheNewPodIsRestartedWhileTheOldOneStops(t *testing.T) {
	a, b := surge(t)
	held := a.stream()
	b.takesOver(1)
	a.await("the old pod to be superseded", state("superseded"))
	a.signal(syscall.SIGTERM)
	dark := b.seesDark()
	b.killPod()
	b.launch()
	b.await("an epoch to serve", func(st node.Status) bool { return st.Serving >= 0 && st.Ready })
	t.Logf("dark for %v", dark.over())
	if !held.isOver() {
		a.flows(held)
	}
	held.conn.Close()
	a.exit(0)
	b.stop()
	b.nothingLeft()
}

func TestBothPodsAreTriggeredAtOnce(t *testing.T) {
	a, b := surge(t)
	a.mixed(300 * time.Millisecond)
	b.launch("--parent-shutdown-time", aMinute)
	for range 5 {
		a.hup()
	}
	b.await("the new pod to serve", func(st node.Status) bool { return st.Serving > 0 && st.Ready })
	a.await("the old pod to be superseded", state("superseded"))
	a.unharmed()
	a.stop()
	b.stop()
	b.nothingLeft()
}

func TestTwoPodsStartAtOnceOnAnEmptyNode(t *testing.T) {
	a := newStage(t)
	b := a.pod("b")
	a.launch()
	b.launch()
	serves := func(st node.Status) bool { return st.Serving >= 0 && st.Ready }
	superseded := state("superseded")
	either := func(st node.Status) bool { return serves(st) || superseded(st) }
	a.await("the one to have its role", either)
	b.await("the other to have its role", either)
	a.until("one to serve and one to be superseded", func() bool {
		x, y := a.status(), b.status()
		return serves(x) && superseded(y) || serves(y) && superseded(x)
	})
	a.stop()
	b.stop()
	b.nothingLeft()
}

func TestAFrozenSupervisorHoldsUpNobody(t *testing.T) {
	a, b := surge(t)
	a.mixed(300 * time.Millisecond)
	a.signal(syscall.SIGSTOP)
	b.takesOver(1)
	a.signal(syscall.SIGCONT)
	a.await("the old pod to be superseded", state("superseded"))
	a.unharmed()
	a.stop()
	b.stop()
	b.nothingLeft()
}

func TestAFrozenPodIsNotTakenOverBeforeItThaws(t *testing.T) {
	a, b := surge(t)
	pid := a.status().Of(0).PID
	a.signal(syscall.SIGSTOP)
	a.kill(pid, syscall.SIGSTOP)
	b.launch("--handoff-deadline", "4s")
	b.exit(5)
	a.kill(pid, syscall.SIGCONT)
	a.signal(syscall.SIGCONT)
	a.until("the old pod to answer again", func() bool { return a.tag() == "v1" })
	c := a.pod("c")
	c.takesOver(1)
	a.stop()
	c.stop()
	c.nothingLeft()
}

// What takes over from the successor is a successor as well.
func TestTheOldPodStaysSupersededThroughLaterHandoffs(t *testing.T) {
	a, b := surge(t)
	a.mixed(300 * time.Millisecond)
	b.takesOver(1, "--parent-shutdown-time", aMinute)
	a.await("the old pod to be superseded", state("superseded"))
	for epoch := 2; epoch <= 5; epoch++ {
		b.hup()
		b.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
		a.stays(time.Second, "the old pod stays superseded", state("superseded"))
	}
	a.unharmed()
	a.stop()
	b.stop()
	b.nothingLeft()
}

// Our own oldest epoch sits where a successor would.
func TestRule11OurOwnThirdGenerationIsNoRival(t *testing.T) {
	s := newStage(t)
	s.start("--parent-shutdown-time", "1h")
	held := []*stream{s.stream()}
	for epoch := 1; epoch <= 2; epoch++ {
		s.hup()
		s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
		held = append(held, s.stream())
	}
	s.stays(3*time.Second, "epoch 2 serves, the others drain", func(st node.Status) bool { return st.State == "draining" && st.Ready })
	s.hup()
	held[0].conn.Close()
	s.await("epoch 3 to serve", node.Serves(3))
	for _, h := range held[1:] {
		h.conn.Close()
	}
	s.stop()
}

// A crash of its Envoy just when a successor is on its way is no reason to end.
func TestTheOldPodsEnvoyDiesWhileItIsContested(t *testing.T) {
	a, b := surge(t)
	gate := b.withheldPod()
	a.kill(a.status().Of(0).PID, syscall.SIGKILL)
	a.await("the old pod to be superseded", state("superseded"))
	a.marker("when its Envoy has died", false)
	b.touch(gate)
	b.await("epoch 1 to serve", node.Serves(1))
	a.stop()
	b.stop()
	b.nothingLeft()
}
