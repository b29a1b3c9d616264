package real

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// What the simulator of several pods has found (docs/rationale.md), on a real
// Envoy. A supervisor looks for a successor once a second; here it is stopped, so
// that all happens between two looks.

// frozenSupervisor runs do while the supervisor's own process is stopped.
func (s *stage) frozenSupervisor(do func()) {
	s.Helper()
	s.must(s.run.Signal(syscall.SIGSTOP))
	do()
	s.must(s.run.Signal(syscall.SIGCONT))
}

// It has taken over, and its Envoy has closed our listeners.
func TestRule11ASuccessorThatCameAndWentBetweenTwoLooks(t *testing.T) {
	a, b := surge(t)
	held := a.stream()
	a.frozenSupervisor(func() {
		b.takesOver(1)
		b.killPod()
	})
	a.await("the old pod to serve again", func(st node.Status) bool { return st.Serving == 1 && st.Ready })
	a.inOrder("contested", "superseded", "orphaned", "epoch serves")
	if got := a.tag(); got != "v1" {
		t.Errorf("answered %q", got)
	}
	a.flows(held)
	held.conn.Close()
	a.stop()
	a.nothingLeft()
}

// It has come to LIVE and not further: our Envoy has lost the admin they share.
func TestFact6ANewcomerThatCameAndWentBetweenTwoLooks(t *testing.T) {
	a, b := surge(t)
	a.frozenSupervisor(func() {
		b.withheldPod()
		b.killPod()
	})
	a.await("an epoch with an admin to serve", func(st node.Status) bool { return st.Serving == 1 && st.Ready })
	a.inOrder("another pod's epoch has come and gone", "the serving epoch has lost its admin")
	a.write("v2")
	a.awaitTag("v2")
	a.stop()
	a.nothingLeft()
}

// It has left the segment's flag, which would have our own next newcomer exit.
func TestFact2AnotherPodsNewcomerDiedInInitBetweenTwoLooks(t *testing.T) {
	a := newStage(t)
	a.startPatient()
	b := a.pod("b")
	b.silentControlPlane()
	b.write("b")
	a.frozenSupervisor(func() {
		b.launch()
		socket := filepath.Join(b.StateDir, "seat.1", fmt.Sprintf("hr_child_%d", b.BaseID*10+1))
		b.until("the newcomer to initialise", func() bool { return len(exists(socket)) > 0 })
		b.killPod()
		a.must(a.run.Signal(syscall.SIGHUP)) // waits with the process
	})
	a.await("epoch 1 to serve", node.Serves(1))
	if a.run.Logged("previous envoy process is still initializing") > 0 {
		t.Error("the newcomer found the flag")
	}
	a.stop()
	a.nothingLeft()
}

// The first epoch drains for as long as its stream lasts, and sits where the
// fourth will: it is no successor of the third.
func TestRule10TheOldestPodIsNoRivalOfTheThird(t *testing.T) {
	a, b := surge(t)
	a.mixed(300 * time.Millisecond)
	held := a.stream()
	b.takesOver(1, "--parent-shutdown-time", aMinute)
	heldToo := b.stream()
	c := a.pod("c")
	c.takesOver(2, "--parent-shutdown-time", aMinute)
	c.stays(3*time.Second, "the third serves, and nobody contests it", func(st node.Status) bool {
		return st.Serving == 2 && st.State != "contested" && st.State != "superseded"
	})
	a.flows(held)
	b.flows(heldToo)
	held.conn.Close()
	heldToo.conn.Close()
	c.hup()
	c.await("epoch 3 to serve", node.Serves(3))
	a.unharmed()
	a.stop()
	b.stop()
	c.stop()
	c.nothingLeft()
}

// The second epoch has ended before the first: the newest is the third, and not
// the one whose next seat is free.
func TestRule10ANewPodFindsTheNewestEpochBehindAGap(t *testing.T) {
	a, b := surge(t, "--parent-shutdown-time", aMinute)
	a.mixed(300 * time.Millisecond)
	held := a.stream()
	a.hup()
	a.await("epoch 1 to serve", node.Serves(1))
	a.hup()
	a.await("epoch 2 to serve", node.Serves(2))
	a.await("epoch 1 to end before epoch 0", func(st node.Status) bool {
		return len(st.Epochs) == 2 && st.Epochs[0].Epoch == 0
	})
	b.launch("--parent-shutdown-time", aMinute)
	b.logs("epoch 0 to end")
	a.flows(held)
	held.conn.Close()
	b.await("epoch 3 to serve", node.Serves(3))
	a.await("the old pod to be superseded", state("superseded"))
	a.unharmed()
	a.stop()
	b.stop()
	b.nothingLeft()
}

// A first epoch whose supervisor is stopped for so long that another pod takes it
// for committed: to take it back would take its child along.
func TestANewcomerThatWasFollowedIsCommitted(t *testing.T) {
	a := newStage(t)
	times := []string{"--handoff-deadline", "5s", "--drain-time", "1s", "--parent-shutdown-time", "4s"}
	a.launch(append(times, "--verify-command", a.script("verify", "exit 1"))...)
	a.await("the first epoch to be LIVE", func(st node.Status) bool { return len(st.Epochs) == 1 && st.Epochs[0].State == "live" })
	b := a.pod("b")
	a.frozenSupervisor(func() { b.takesOver(1, times...) })
	a.await("the frozen pod to be superseded", state("superseded"))
	a.inOrder("another pod's epoch takes over from the newcomer", "superseded")
	b.stays(3*time.Second, "epoch 1 serves on", node.Serves(1))
	if got := b.tag(); got != "b" {
		t.Errorf("answered %q", got)
	}
	a.stop()
	b.stop()
	b.nothingLeft()
}
