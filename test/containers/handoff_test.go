package containers

import (
	"fmt"
	"testing"
	"time"

	observe "aether.internal/test/node"
)

func TestAHandoffInOnePodDropsNothing(t *testing.T) {
	n := newNode(t)
	a := n.pod("a")
	a.serves(0)
	n.generation(0, 1)
	n.mixed(500 * time.Millisecond)
	a.signal("HUP")
	a.await("epoch 1 alone", observe.Alone(1))
	n.generation(1, 2)
	a.write("v2")
	a.await("epoch 2 alone", observe.Alone(2))
	n.generation(2, 3)
	if got := n.unharmed("mixed").Epochs(); got["v2"] == 0 {
		t.Errorf("answered by %v", got)
	}
	a.stop()
}

func TestFact19ANewPodTakesOverAndDropsNothing(t *testing.T) {
	n := newNode(t)
	a, b := n.pod("a"), n.pod("b")
	a.serves(0)
	n.mixed(500 * time.Millisecond)
	st := b.serves(1)
	if st.PID != 1 {
		t.Errorf("pid %d: not a namespace of its own", st.PID)
	}
	n.generation(1, 2)
	a.await("the old pod to be superseded", state("superseded"))
	if a.ready() || !b.ready() {
		t.Errorf("the probes say: old pod ready %t, new pod ready %t", a.ready(), b.ready())
	}
	a.stop()
	b.await("the new pod's epoch alone", observe.Alone(1))
	b.confinedTo(nonroot)
	got := n.unharmed("mixed").Epochs()
	if got["a"] == 0 || got["b"] == 0 {
		t.Errorf("answered by %v, want both pods", got)
	}
	b.stop()
}

func TestImageUpgradeAndBackDropsNothing(t *testing.T) {
	n := newNode(t)
	old := n.pod("v0")
	old.version = "1.36.4"
	old.serves(0)
	n.mixed(300 * time.Millisecond)
	for i, version := range []string{"1.40.0", "1.36.4"} {
		next := n.pod(fmt.Sprintf("v%d", i+1))
		next.version = version
		if st := next.serves(i + 1); st.Of(i+1).EnvoyVersion != version {
			t.Errorf("runs %s, want %s", st.Of(i+1).EnvoyVersion, version)
		}
		old.stop()
		old = next
	}
	n.unharmed("mixed")
	old.stop()
}

// A pod whose supervisor has no relay, before one that has, and the other way.
func TestPlainPodsHandOverAndDropNothing(t *testing.T) {
	n := newNode(t)
	old := n.pod("p0")
	old.serves(0, "--relay=false", "--parent-shutdown-time", "6s")
	n.mixed(300 * time.Millisecond)
	for i, relay := range []string{"true", "false"} {
		next := n.pod(fmt.Sprintf("p%d", i+1))
		st := next.serves(i+1, "--relay="+relay, "--parent-shutdown-time", "6s")
		if plain := relay == "false"; plain != (st.Mode == "plain") {
			t.Errorf("--relay=%s: mode %q", relay, st.Mode)
		}
		old.await("the old pod to be superseded", state("superseded"))
		old.stop()
		next.await("the predecessor to be gone", observe.Alone(i+1))
		old = next
	}
	n.unharmed("mixed")
	old.stop()
}
