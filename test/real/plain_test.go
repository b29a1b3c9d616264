package real

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aether.internal/test/node"
)

// Plain mode: a newcomer commits itself, and only Envoy's own timer ends a parent.

func TestRule6PlainModeEndsParentsByEnvoysTimerOnly(t *testing.T) {
	for name, args := range map[string][]string{"SwitchedOff": {"--relay=false"}, "UnknownHotRestartVersion": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			if args == nil {
				s.wrapEnvoy(`case "$*" in *--hot-restart-version*) echo 99.1 >&2; exit 0;; esac`)
			}
			s.start(append(args, "--drain-time", "1s", "--parent-shutdown-time", "4s")...)
			s.loadWith(brisk(s.Target()))
			for epoch := 1; epoch <= 3; epoch++ {
				s.write(fmt.Sprintf("v%d", epoch+1))
				st := s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
				if st.Mode != "plain" {
					t.Errorf("mode %q", st.Mode)
				}
				if e := st.Of(epoch - 1); e != nil && e.TimeLeftSeconds >= 0 {
					t.Errorf("epoch %d has a deadline of ours: %+v", epoch-1, e)
				}
			}
			s.await("the last parent to end", node.Alone(3))
			if n := s.run.Logged("old epoch is ended"); n != 0 {
				t.Errorf("%d parents were ended by us", n)
			}
			s.until("three parents to have ended with exit code 0", func() bool { return s.run.Logged(`"status":"exit code 0"`) == 3 })
			s.unharmed()
			s.stop()
		})
	}
}

// The next handoff waits for the parent's end, however long; then the newest
// input is taken.
func TestRule4PlainModeHandsOverOnlyWhenTheParentHasEnded(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start("--relay=false", "--drain-time", "1s", "--parent-shutdown-time", "3s")
	s.write("v2")
	s.await("epoch 1 to serve", node.Serves(1))
	s.write("v3")
	s.await("the next to wait", func(st node.Status) bool {
		return st.Pending != nil && strings.Contains(st.Pending.WaitsFor, "epoch 0 (draining")
	})
	s.await("epoch 2 to serve", func(st node.Status) bool { return st.Serving == 2 && st.Of(0) == nil })
	s.inOrder(`"epoch serves","epoch":1`, `"old epoch has ended","epoch":0`, `"newcomer started","epoch":2`)
	s.stop()
}

// Fact 20: in plain mode nothing stands between a newcomer that is LIVE with
// nothing and the parent's drain.
func TestFact20PlainModeRefusesABootstrapThatDoesNotWaitForItsControlPlane(t *testing.T) {
	t.Parallel()
	p := newPlane(t, 2*time.Second)
	p.begin("--relay=false", "--drain-time", "1s", "--parent-shutdown-time", "3s")
	p.hup()
	p.logs("initial_fetch_timeout: 0s")
	if st := p.status(); st.Serving != 0 || len(st.Epochs) != 1 || !failed(1, "initial_fetch_timeout: 0s")(st) {
		t.Errorf("%+v", st)
	}
	p.Bootstrap.InitialFetchTimeout = 0
	p.write("v2")
	p.await("epoch 1 to serve", node.Serves(1))
	p.await("epoch 0 to end", node.Alone(1))
	p.end()
}

// Without a relay nobody sees how far a newcomer came. Until it listens, the
// admin they share is the parent's, which must not be told to drain.
func TestRule7PlainModeTakesBackANewcomerThatNeverListened(t *testing.T) {
	for name, line := range map[string]string{"Hangs": "exec sleep 600", "Ends": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			hangs := filepath.Join(s.Dir, "hangs")
			s.wrapEnvoy(`case "$*" in *"--restart-epoch 1"*) case "$*" in *validate*) ;; *) [ ! -e ` + hangs + ` ] || ` + line + `;; esac;; esac`)
			s.start("--relay=false", "--handoff-deadline", "2s", "--drain-time", "1s", "--parent-shutdown-time", "3s", "--watch-config=false")
			s.loadWith(quiet(s.Target()))
			s.touch(hangs)
			if code, out := s.proxyctl("reload", "--wait"); code == 0 {
				t.Errorf("committed: %s", out)
			}
			if st := s.status(); st.Serving != 0 || !st.Ready {
				t.Errorf("%+v", st)
			}
			s.write("v2")
			if err := os.Remove(hangs); err != nil {
				t.Fatal(err)
			}
			s.hup()
			s.awaitTag("v2")
			s.unharmed()
			s.stop()
		})
	}
}
