package real

import (
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

func TestRule8StopWhenIdle(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			s := newStage(t)
			s.start("--drain-time", "30s", "--parent-shutdown-time", "60s")
			s.signal(sig)
			s.exit(0)
			s.inOrder("stopping", "drained: no connection is left")
			s.nothingLeft()
		})
	}
}

// A terminal's Ctrl-C goes to the whole process group: an Envoy that gets it
// too ends at once, undrained.
func TestRule8CtrlCAtATerminalDrains(t *testing.T) {
	s := newStage(t)
	s.start("--drain-time", "30s", "--parent-shutdown-time", "60s")
	held := s.stream()
	s.kill(-s.run.Cmd.Process.Pid, syscall.SIGINT) // it leads its session
	s.logs("stop: waiting for connections")
	s.flows(held)
	held.conn.Close()
	s.exit(0)
	s.inOrder("stopping", "drained: no connection is left")
	s.nothingLeft()
}

func TestRule8StreamsThatEndInTimeEndWhole(t *testing.T) {
	s := newStage(t)
	s.start("--drain-time", "30s", "--parent-shutdown-time", "60s")
	s.mixed(3 * time.Second)
	s.until("the load to run", func() bool { return s.load.Snapshot().OK() > 200 })
	s.stopUnderLoad()
	s.inOrder("stopping", "draining", "drained: no connection is left")
	s.nothingLeft()
}

// stopUnderLoad stops the supervisor, then the load, which waits for what it
// has begun. A stream of ours is there until all of that has a connection:
// without any the supervisor would rightly be gone in between.
func (s *stage) stopUnderLoad() {
	s.Helper()
	held := s.stream()
	s.signal(syscall.SIGTERM)
	s.unharmed()
	held.conn.Close()
	s.exit(0)
}

func TestRule8LongerStreamsAreCutAfterTheDrainTime(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--drain-time", "3s")
	held := s.stream()
	earliest := time.Now().Add(3 * time.Second)
	s.signal(syscall.SIGTERM)
	s.wasCut(held, earliest)
	s.exit(0)
	s.inOrder("stopping", "draining", "the wait for connections is over")
	s.nothingLeft()
}

// An older generation has been promised its limit, which is longer.
func TestRule8AnOlderGenerationKeepsItsLimit(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "8s")
	held := s.stream()
	earliest := time.Now().Add(8 * time.Second)
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	s.signal(syscall.SIGTERM)
	s.wasCut(held, earliest)
	s.exit(0)
	s.nothingLeft()
}

// The newcomer accepts connections by then, and none of them is cut.
func TestRule8StopWhileANewcomerIsWithheld(t *testing.T) {
	s := newStage(t)
	verify, _ := s.withheld()
	s.start("--verify-command", verify, "--drain-time", "30s", "--parent-shutdown-time", "60s")
	s.mixed(2 * time.Second)
	s.hup()
	s.await("epoch 1 to be withheld", inState(1, "live"))
	before := s.load.Snapshot().OK()
	s.until("the load to reach both epochs", func() bool { return s.load.Snapshot().OK() > before+300 })
	s.stopUnderLoad()
	s.inOrder("stopping", "newcomer is removed", "draining", "drained: no connection is left")
	s.nothingLeft()
}

// A check that hangs is ended with its newcomer.
func TestRule8StopDuringTheUsersCheck(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--verify-command", s.script("verify", `[ "$AETHER_EPOCH" = 0 ] || exec sleep 1000`))
	s.hup()
	s.await("epoch 1 to be withheld", inState(1, "live"))
	s.stop()
	s.inOrder("newcomer is removed", "draining")
	s.nothingLeft()
}

// A newcomer in init has taken its parent's admin, and the request that drains a
// parent without one has new connections refused at once (fact 6). What has a
// connection ends whole.
func TestRule8StopBeforeTheNewcomerIsLive(t *testing.T) {
	s := newStage(t)
	s.start("--drain-time", "30s", "--parent-shutdown-time", "60s")
	asked := s.silentControlPlane()
	s.write("v2")
	s.await("epoch 1 to start", inState(1, "starting"))
	s.until("epoch 1 to be in init", func() bool { return asked.Load() > 0 })
	held, request := s.stream(), s.heldRequest("/")
	s.signal(syscall.SIGTERM)
	s.logs("stop: waiting for connections")
	request.finish(s)
	s.flows(held)
	held.conn.Close()
	s.exit(0)
	s.inOrder("stopping", "newcomer is removed", "draining", "drained: no connection is left")
	s.nothingLeft()
}

func TestRule8StopBeforeEpoch0IsLive(t *testing.T) {
	for _, c := range []struct {
		name string
		hold func(*stage) (reached func() bool)
	}{
		{"while the binary is asked for its version", func(s *stage) func() bool {
			return s.holdEnvoyAt("--version")
		}},
		{"while the bootstrap is validated", func(s *stage) func() bool {
			return s.holdEnvoyAt("--mode")
		}},
		{"before it listens", func(s *stage) func() bool {
			return s.holdEnvoyAt("--base-id")
		}},
		{"in init", func(s *stage) func() bool {
			asked := s.silentControlPlane()
			s.write("v1")
			return func() bool { return asked.Load() > 0 }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			reached := c.hold(s)
			s.launch()
			s.until("the moment "+c.name, reached)
			s.stop()
			s.nothingLeft()
		})
	}
}

// holdEnvoyAt makes the Envoy that is started with this flag hang for ever.
func (s *stage) holdEnvoyAt(flag string) (reached func() bool) {
	mark := s.Dir + "/reached"
	s.wrapEnvoy(`case " $* " in *" ` + flag + ` "*) : > ` + mark + `; exec sleep 1000;; esac`)
	return func() bool { return len(exists(mark)) > 0 }
}

func TestRule8ASecondStopSkipsTheWait(t *testing.T) {
	s := newStage(t)
	s.start("--drain-time", "10m", "--parent-shutdown-time", "11m")
	held := s.stream()
	s.signal(syscall.SIGTERM)
	s.logs("stop: waiting for connections")
	s.flows(held)
	s.signal(syscall.SIGTERM)
	s.exit(0)
	s.inOrder("stopping", "draining", "stopping without waiting")
	s.nothingLeft()
}

// The newcomer is on its way out, and waits for its own connections.
func TestRule8ASecondStopKillsTheNewcomerAtOnce(t *testing.T) {
	s := newStage(t)
	verify, _ := s.withheld()
	s.start("--verify-command", verify, "--drain-time", "10m", "--parent-shutdown-time", "11m")
	s.hup()
	s.await("epoch 1 to be withheld", inState(1, "live"))
	for range 32 { // both epochs accept, so each has some
		s.stream()
	}
	s.signal(syscall.SIGTERM)
	s.logs("newcomer is removed")
	s.signal(syscall.SIGINT)
	s.exit(0)
	s.nothingLeft()
}

// A stopped Envoy answers nothing and ignores SIGTERM (fact 16).
func TestRule8StopWithAStoppedEnvoy(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrange func(*stage) int // the pid to be stopped
	}{
		{"the serving one", func(s *stage) int {
			s.start()
			return s.status().Of(0).PID
		}},
		{"a withheld newcomer", func(s *stage) int {
			verify, _ := s.withheld()
			s.start("--verify-command", verify)
			s.hup()
			return s.await("epoch 1 to be withheld", inState(1, "live")).Of(1).PID
		}},
		{"a newcomer in init", func(s *stage) int {
			s.start()
			asked := s.silentControlPlane()
			s.write("v2")
			s.until("epoch 1 to be in init", func() bool { return asked.Load() > 0 })
			return s.await("epoch 1 to start", inState(1, "starting")).Of(1).PID
		}},
		{"a draining parent", func(s *stage) int {
			s.start("--parent-shutdown-time", "4s")
			s.stream()
			s.hup()
			return s.await("epoch 1 to serve", node.Serves(1)).Of(0).PID
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.kill(c.arrange(s), syscall.SIGSTOP)
			s.stop()
			s.nothingLeft()
		})
	}
}
