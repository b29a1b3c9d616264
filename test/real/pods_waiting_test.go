package real

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// waitsFor wants a supervisor to say what it waits for.
func waitsFor(text string) func(node.Status) bool {
	return func(st node.Status) bool { return st.Pending != nil && strings.Contains(st.Pending.WaitsFor, text) }
}

// One handoff at a time (rule 4), whosever it is.
func TestRule4ANewPodWaitsForAHandoffInPlace(t *testing.T) {
	a := newStage(t)
	command, gate := a.withheld()
	a.startPatient("--verify-command", command)
	a.mixed(300 * time.Millisecond)
	a.write("v2")
	a.await("epoch 1 to be withheld", inState(1, "live"))
	b := a.pod("b")
	b.launch("--parent-shutdown-time", aMinute)
	b.await("it to wait", waitsFor("epoch 1 to be committed or taken back"))
	a.touch(gate)
	b.await("epoch 2 to serve", node.Serves(2))
	a.await("the old pod to be superseded", state("superseded"))
	a.unharmed()
	a.stop()
	b.stop()
	b.nothingLeft()
}

func TestRule4AThirdPodWaitsForTheSecond(t *testing.T) {
	a, b := surge(t)
	gate := b.withheldPod()
	c := a.pod("c")
	c.launch("--parent-shutdown-time", aMinute)
	c.await("it to wait", waitsFor("epoch 1 to be committed or taken back"))
	a.mixed(300 * time.Millisecond)
	b.touch(gate)
	c.await("epoch 2 to serve", node.Serves(2))
	b.await("the second pod to be superseded", state("superseded"))
	a.await("the first to stay superseded", state("superseded"))
	a.unharmed()
	a.stop()
	b.stop()
	c.stop()
	c.nothingLeft()
}

// The second pod is given up while the third waits: it takes over from the first.
func TestAThirdPodFollowsTheFirstWhenTheSecondIsGone(t *testing.T) {
	a, b := surge(t)
	b.withheldPod()
	c := a.pod("c")
	c.launch("--parent-shutdown-time", aMinute)
	c.await("it to wait", waitsFor("epoch 1 to be committed or taken back"))
	b.killPod()
	c.await("epoch 1 to serve", node.Serves(1))
	a.await("the first to be superseded", state("superseded"))
	a.stop()
	c.stop()
	c.nothingLeft()
}

func TestRule8APodThatWaitsIsStopped(t *testing.T) {
	a, b := surge(t)
	b.withheldPod()
	c := a.pod("c")
	c.launch()
	c.await("it to wait", waitsFor("epoch 1 to be committed or taken back"))
	c.stop()
	b.signal(syscall.SIGTERM) // before its commit: its newcomer is removed
	b.exit(0)
	a.await("the old pod to go on", state("serving"))
	if got := a.tag(); got != "v1" {
		t.Errorf("answered %q", got)
	}
	a.stop()
	a.nothingLeft()
}
