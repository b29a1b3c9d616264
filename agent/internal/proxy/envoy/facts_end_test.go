package envoy

import (
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/process"
)

// Facts about how Envoys end and begin without each other.

func ended(t *testing.T, what string, p *process.Process) process.Status {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(time.Minute):
		t.Fatalf("%s goes on", what)
	}
	return p.Wait()
}

func TestFact7AChildWithoutAParent(t *testing.T) {
	t.Parallel()
	n := newNode(t, "")
	if st := ended(t, "a child without a segment", n.start(t, 1, n.static(""))); st.Signal != syscall.SIGABRT {
		t.Errorf("without a segment: %v", st)
	}
	parent := n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	wantNil(t, parent.Signal(syscall.SIGKILL))
	parent.Wait()
	start := time.Now()
	if st := ended(t, "a child with a stale segment", n.start(t, 1, n.static(""))); st.Signal != syscall.SIGABRT {
		t.Errorf("with a stale segment: %v", st)
	}
	t.Logf("it tried for %s", time.Since(start))
	if blocked, err := SegmentBlocked(n.baseID); !blocked || err != nil {
		t.Errorf("the flag is left: %t, %v", blocked, err)
	}
	n.start(t, 0, n.static("")) // over the stale segment, flag and all
	n.state(t, 0, "LIVE")
}

func TestFact7OnlyTheNumberModulo3Counts(t *testing.T) {
	t.Parallel()
	n := newNode(t, "")
	n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	n.start(t, 4, n.static("")) // 4 looks for its parent where epoch 0 listens
	n.state(t, 4, "LIVE")
	if !n.serves() {
		t.Error("nobody serves")
	}
}

func TestFact15SIGTERMToAChildEndsItsParent(t *testing.T) {
	t.Parallel()
	n := newNode(t, "")
	parent := n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	child := n.start(t, 1, n.static(silent(silentControlPlane(t))))
	n.state(t, 1, "PRE_INITIALIZING") // it doesn't even serve yet
	wantNil(t, child.Signal(syscall.SIGTERM))
	for name, p := range map[string]*process.Process{"the child": child, "its parent": parent} {
		if st := ended(t, name, p); st.Code != 0 {
			t.Errorf("%s: %v", name, st)
		}
	}
}

// A parent that is asked for its admin ends its own parent, long before any
// timer.
func TestAChildEndsItsGrandparent(t *testing.T) {
	t.Parallel()
	n := newNode(t, "")
	oldest := n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	middle := n.start(t, 1, n.static(""))
	n.state(t, 1, "LIVE")
	n.start(t, 2, n.static(silent(silentControlPlane(t))))
	n.state(t, 2, "PRE_INITIALIZING")
	if st := ended(t, "the oldest", oldest); st.Code != 0 {
		t.Errorf("%v", st)
	}
	select {
	case <-middle.Done():
		t.Error("the one in the middle has ended")
	default:
	}
}
