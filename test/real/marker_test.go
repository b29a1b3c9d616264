package real

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"aether.internal/test/node"
)

// The marker says one thing: our own, committed epoch serves.
func TestRule13MarkerIsThereWhileOurEpochServes(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	gate := filepath.Join(s.Dir, "gate")
	s.launch("--verify-command", s.script("verify", `[ -e `+gate+` ]`), "--drain-time", "30s", "--parent-shutdown-time", "60s")
	s.await("epoch 0 to be LIVE", inState(0, "live"))
	s.logs("waiting for the newcomer to be complete")
	s.marker("before the commit", false)

	s.touch(gate)
	s.await("epoch 0 to serve", node.Serves(0))
	s.marker("after the commit", true)

	if err := s.WriteRaw([]byte("admin: {nonsense: 1}\n")); err != nil {
		s.Fatal(err)
	}
	s.logs("restart refused")
	s.marker("after a refused bootstrap", true)

	os.Remove(gate)
	s.write("v2")
	s.await("epoch 1 to be withheld", inState(1, "live"))
	s.marker("during a handoff", true)
	s.touch(gate)
	s.await("epoch 1 to serve", node.Serves(1))
	s.marker("after a handoff", true)

	held := s.stream()
	s.signal(syscall.SIGTERM)
	s.logs("stop: waiting for connections")
	s.marker("while it stops", false)
	s.flows(held)
	held.conn.Close()
	s.exit(0)
	s.nothingLeft()
}

func TestRule13MarkerOfACrashIsNotFresh(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		crash func(*stage) (exit int)
		file  bool // may stay behind, unlocked
	}{
		{"the supervisor is killed", func(s *stage) int {
			s.signal(syscall.SIGKILL)
			return 128 + int(syscall.SIGKILL)
		}, true},
		{"its Envoy is killed", func(s *stage) int {
			s.kill(s.status().Of(0).PID, syscall.SIGKILL)
			return 128 + int(syscall.SIGKILL)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.start()
			s.marker("while it serves", true)
			s.exit(c.crash(s))
			s.marker("after the crash", false)
			if !c.file && len(exists(s.Marker)) > 0 {
				s.Error("the marker is still there")
			}
		})
	}
}

// A crash of the newest epoch ends the supervisor, which leaves nothing either.
func TestRule13MarkerAndAllElseGoWithTheNewestEpoch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.kill(s.status().Of(0).PID, syscall.SIGSEGV)
	s.exit(128 + int(syscall.SIGSEGV))
	s.nothingLeft()
}

func (s *stage) marker(when string, want bool) {
	s.Helper()
	if got := s.markerFresh(); got != want {
		s.Errorf("%s: the marker is fresh: %t, want %t", when, got, want)
	}
}
