package real

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// The supervisor's own program is replaced: the process stays, and its Envoys
// don't notice.

// upgrades has it done once, and wants all to be as it was.
func (s *stage) upgrades() {
	s.Helper()
	before := s.status()
	agent, err := node.Agent(s.ctx)
	s.must(err)
	if code, out := s.proxyctl("upgrade", "--path", agent); code != 0 || !strings.Contains(out, "runs, in place of") {
		s.Fatalf("proxyctl upgrade: exit code %d: %s", code, out)
	}
	after := s.status()
	if after.Upgrades != before.Upgrades+1 || after.PID != before.PID || after.Serving != before.Serving || after.Ready != before.Ready {
		s.Fatalf("before %+v\nafter %+v", before, after)
	}
	if e, was := after.Of(after.Serving), before.Of(before.Serving); e.PID != was.PID || e.ConfigHash != was.ConfigHash {
		s.Fatalf("before %+v\nafter %+v", before, after)
	}
}

// refusesUpgrade has it tried with a program that is not fit.
func (s *stage) refusesUpgrade(path string, words ...string) {
	s.Helper()
	before := s.status()
	code, out := s.proxyctl("upgrade", "--path", path)
	if code != 1 {
		s.Errorf("proxyctl upgrade --path %s: exit code %d: %s", path, code, out)
	}
	for _, w := range words {
		if !strings.Contains(out, w) {
			s.Errorf("proxyctl upgrade --path %s says nothing of %q: %s", path, w, out)
		}
	}
	if after := s.status(); after.Upgrades != before.Upgrades || after.Serving != before.Serving || !after.Ready {
		s.Errorf("before %+v\nafter %+v", before, after)
	}
}

func TestTenUpgradesInARowUnderLoadWithHotRestartsBetween(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(500 * time.Millisecond)
	epoch := 0
	for n := 1; n <= 10; n++ {
		s.upgrades()
		if n%2 == 0 {
			epoch++
			s.write(fmt.Sprintf("v%d", epoch+1))
			s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
		}
	}
	s.marker("after all upgrades", true)
	s.hup()
	s.await("the last epoch", node.Serves(epoch+1))
	s.unharmed()
	if _, out := s.proxyctl("history"); strings.Count(out, "committed") != epoch+2 {
		s.Errorf("the history of all programs:\n%s", out)
	}
	s.await("the old epochs to be gone", node.Alone(epoch+1))
	s.stop()
	s.nothingLeft()
}

func TestAnUpgradeWhileTwoParentsDrainWithOpenStreams(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(300 * time.Millisecond)
	streams := s.threeGenerations()
	s.upgrades()
	for _, st := range streams {
		s.flows(st)
	}
	s.upgrades()
	// A parent is still counted, and ends as soon as it is idle.
	streams[0].conn.Close()
	s.await("the oldest epoch to be gone", func(st node.Status) bool { return st.Of(0) == nil })
	s.flows(streams[1])
	s.hup()
	s.await("epoch 3 to serve", node.Serves(3))
	s.flows(streams[1])
	s.unharmed()
	for _, st := range streams {
		st.conn.Close()
	}
	s.await("all old epochs to be gone", node.Alone(3))
	s.stop()
	s.nothingLeft()
}

func TestAParentThatDiesRightAfterAnUpgradeIsAnsweredFor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.startPatient()
	st := s.stream()
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	parent := s.status().Of(0).PID
	s.upgrades()
	s.kill(parent, syscall.SIGKILL)
	s.await("the parent to be gone", node.Alone(1))
	<-st.ended
	s.flushes(3)
	s.upgrades() // of a relay whose parent has gone
	s.flushes(2)
	s.hup()
	s.await("epoch 2 to serve", node.Serves(2))
	s.stop()
	s.nothingLeft()
}

func TestAProgramThatIsNotFitIsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	agent, err := node.Agent(s.ctx)
	s.must(err)
	broken := filepath.Join(s.Dir, "broken")
	s.must(os.WriteFile(broken, []byte("\x7fELF, or not"), 0o755))
	s.refusesUpgrade(broken, "refused", broken, "can't be run")
	s.refusesUpgrade(filepath.Join(s.Dir, "none"), "does not exist")
	s.refusesUpgrade("/bin/true", "does not say whether it can take over")
	s.refusesUpgrade(s.script("old", `echo '{"takes":false,"version":"0.9","error":"format 1 is none of mine"}'; exit 0`), "format 1 is none of mine")
	s.refusesUpgrade(s.script("crashes", `kill -SEGV $$`), "signal 11")
	// It says that it can, and then finds that it can't: the old one is back.
	other := s.script("other", fmt.Sprintf(`[ -n "$AETHER_CHECK_STATE_FD" ] && exec %s "$@"
for a in "$@"; do [ "$a" = -- ] && set -- "$@" --ready-marker %s/other; set -- "$@" "$a"; shift; done
exec %s "$@"`, agent, s.Dir, agent))
	s.refusesUpgrade(other, "failed, and version", "--ready-marker")
	// Or its new program does not even come to that.
	ends := s.script("ends", fmt.Sprintf(`[ -n "$AETHER_CHECK_STATE_FD" ] && exec %s "$@"; first=$1; shift; exec %s "$first" --no-such-flag "$@"`, agent, agent))
	s.refusesUpgrade(ends, "failed, and version", "no-such-flag")
	s.logs("the supervisor goes on with its old program")
	if code, out := s.proxyctl("upgrade", "--check", "--path", agent); code != 0 || !strings.Contains(out, "can take over") {
		s.Errorf("upgrade --check: exit code %d: %s", code, out)
	}
	s.marker("after all that", true)
	s.upgrades()
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	s.stop()
	s.nothingLeft()
}

func TestUpgradesInEveryMode(t *testing.T) {
	for name, args := range map[string][]string{
		"plain":           {"--relay=false"},
		"admin per epoch": {"--admin-per-epoch"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.start(args...) // its timers are short: in plain mode a parent ends by them
			for epoch := 1; epoch <= 2; epoch++ {
				s.upgrades()
				s.hup()
				s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
				s.upgrades() // while its parent drains
				s.await("its parent to be gone", node.Alone(epoch))
			}
			s.stop()
			s.nothingLeft()
		})
	}
}

func TestADrainedEnvoyStaysDrainedThroughAnUpgrade(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.told("drain", "drained: epoch 0 is not ready")
	s.upgrades()
	s.marker("drained, after an upgrade", false)
	s.asksToClose(true)
	s.told("undrain", "undrained: epoch 0 is ready")
	s.marker("undrained", true)
	s.upgrades()
	s.marker("undrained, after an upgrade", true)
	s.stop()
	s.nothingLeft()
}

func TestSIGTERMRightAfterAnUpgradeEndsDrained(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.upgrades()
	s.signal(syscall.SIGTERM)
	s.exit(0)
	s.nothingLeft()
}

func TestAnEnvoyThatDiesRightAfterAnUpgradeIsNoticed(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.startPatient()
	st := s.stream()
	s.hup()
	s.await("epoch 1 to serve", node.Serves(1))
	s.upgrades()
	dead := s.status().Of(1).PID
	s.kill(dead, syscall.SIGKILL)
	s.await("epoch 1 to serve again", func(now node.Status) bool { return now.Serving == 1 && now.Ready && now.Of(1).PID != dead })
	s.flows(st)
	s.upgrades()
	st.conn.Close()
	s.await("it alone", node.Alone(1))
	s.kill(s.status().Of(1).PID, syscall.SIGKILL)
	s.exit(137)
	s.nothingLeft()
}

func TestUpgradesAcrossPods(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(300 * time.Millisecond)
	s.upgrades()
	old := s
	for epoch := 1; epoch <= 3; epoch++ {
		p := s.pod(fmt.Sprintf("p%d", epoch))
		p.takesOver(epoch, "--parent-shutdown-time", "60s")
		p.upgrades() // its parent is another pod's, and may still live
		old.await("the old pod to be superseded", state("superseded"))
		if code, out := old.proxyctl("upgrade", "--timeout", "1s"); code != 1 || !strings.Contains(out, "takes over from ours") && !strings.Contains(out, "no epoch of ours serves") {
			s.Errorf("the upgrade of a superseded pod: exit code %d: %s", code, out)
		}
		old.stop()
		p.upgrades()
		old = p
	}
	s.unharmed()
	old.stop()
	s.run = nil
	s.nothingLeft()
}

func TestAServiceManagerHearsOnThroughAnUpgrade(t *testing.T) {
	s := newStage(t)
	m := manage(t)
	s.start()
	s.until("READY", func() bool { return m.heard("READY=1") == 1 })
	s.upgrades()
	s.until("READY of the new program", func() bool { return m.heard("READY=1") == 2 })
	beats := m.heard("WATCHDOG=1")
	s.until("the watchdog's next beats", func() bool { return m.heard("WATCHDOG=1") > beats+2 })
	s.hup()
	s.await("epoch 1 to serve alone", node.Alone(1))
	s.until("the reload's READY", func() bool { return m.heard("READY=1") == 3 && m.heard("RELOADING=1") == 1 })
	s.stop()
	if m.heard("STOPPING=1") != 1 {
		t.Errorf("%q", m.states())
	}
}
