package real

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

func TestLeftoversOfARebootAreNobody(t *testing.T) {
	for name, leave := range map[string]func(*stage){
		"a heartbeat": func(s *stage) {
			s.must(os.WriteFile(filepath.Join(s.StateDir, "epoch"), []byte(`{"version":1,"epoch":5,"generation":6,"concurrency":64}`), 0o600))
		},
		"garbage for a heartbeat": func(s *stage) {
			s.must(os.WriteFile(filepath.Join(s.StateDir, "epoch"), []byte("\x00\xff{"), 0o600))
		},
		"seat directories with links": func(s *stage) {
			for seat := range 3 {
				dir := filepath.Join(s.StateDir, "seat."+strconv.Itoa(seat))
				s.must(os.Mkdir(dir, 0o700))
				s.must(os.Symlink("nowhere", filepath.Join(dir, fmt.Sprintf("hr_child_%d%d", s.BaseID, seat))))
			}
		},
		"a segment with its flag": func(s *stage) {
			segment := make([]byte, 104)
			segment[0], segment[8], segment[96] = 104, 11, 1
			s.must(os.WriteFile(s.Segment(), segment, 0o600))
		},
		"a snapshot": func(s *stage) {
			s.must(os.WriteFile(filepath.Join(s.StateDir, "bootstrap.123.yaml"), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.must(os.MkdirAll(s.StateDir, 0o700))
			leave(s)
			s.start()
			if c := s.status().Concurrency; c == 64 {
				t.Error("a dead peer's concurrency counts")
			}
			s.hup()
			s.await("epoch 1 to serve", node.Serves(1))
			s.stop()
			s.nothingLeft()
		})
	}
}

func TestImageUpgradeAndBackAcrossPods(t *testing.T) {
	a := newStageWith(t, "1.36.4")
	a.startPatient()
	a.mixed(300 * time.Millisecond)
	old := a
	for epoch, version := range []string{"1.40.0", "1.36.4"} {
		p := a.pod(fmt.Sprintf("p%d", epoch))
		p.must(p.InstallEnvoy(p.ctx, version))
		p.takesOver(epoch+1, "--parent-shutdown-time", aMinute)
		if v := p.status().Of(epoch + 1).EnvoyVersion; v != version {
			t.Errorf("runs %s", v)
		}
		old.stop()
		old = p
	}
	a.unharmed()
	old.stop()
	old.nothingLeft()
}

func TestPlainPodsHandOver(t *testing.T) {
	for name, modes := range map[string][2]string{
		"from plain":    {"--relay=false", "--relay=true"},
		"to plain":      {"--relay=true", "--relay=false"},
		"between plain": {"--relay=false", "--relay=false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newStage(t)
			a.start(modes[0], "--parent-shutdown-time", "8s")
			a.mixed(300 * time.Millisecond)
			b := a.pod("b")
			b.takesOver(1, modes[1], "--parent-shutdown-time", "8s")
			a.await("the old pod to be superseded", state("superseded"))
			a.unharmed()
			a.stop()
			b.await("the predecessor to be gone", node.Alone(1))
			b.hup()
			b.await("epoch 2 to serve", node.Serves(2))
			b.stop()
			b.nothingLeft()
		})
	}
}

func TestPodsInSeparatePIDNamespacesHandOver(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root for a PID namespace")
	}
	a, b := surge(t)
	a.mixed(300 * time.Millisecond)
	b.run = &node.Run{Node: b.Node, Namespaces: syscall.CLONE_NEWPID}
	b.must(b.run.Start(b.ctx))
	b.await("epoch 1 to serve", node.Serves(1))
	a.unharmed()
	a.stop()
	b.await("the predecessor to be gone", node.Alone(1))
	b.stop()
	b.nothingLeft()
}

// With UDP Envoy's own timer ends the parent, whosever it is.
func TestRule6WithUDPThePredecessorEndsByEnvoysTimer(t *testing.T) {
	a := newStage(t)
	udp := udpListener(a.freeUDPPort(), a.udpEcho())
	a.writeWith("v1", udp)
	a.start("--drain-time", "1s", "--parent-shutdown-time", "4s")
	a.loadWith(brisk(a.Target()))
	b := a.pod("b")
	b.writeWith("b", udp)
	b.takesOver(1, "--drain-time", "1s", "--parent-shutdown-time", "4s")
	if m := b.status().Mode; m != "udp" {
		t.Errorf("mode %q", m)
	}
	st := a.await("the old pod to be superseded", state("superseded"))
	if e := st.Of(0); e == nil || e.TimeLeftSeconds >= 0 {
		t.Errorf("the old epoch has a limit of ours, or is gone: %+v", e)
	}
	a.await("it to end by itself", func(st node.Status) bool { return len(st.Epochs) == 0 })
	if a.run.Logged("old epoch is ended") > 0 {
		t.Error("it was ended by us")
	}
	a.unharmed()
	a.stop()
	b.stop()
	b.nothingLeft()
}

func TestPodsWithAnAdminPerEpochHandOver(t *testing.T) {
	for name, modes := range map[string][2]string{
		"both": {"true", "true"}, "only the old one": {"true", "false"}, "only the new one": {"false", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newStage(t)
			a.start("--admin-per-epoch="+modes[0], "--parent-shutdown-time", aMinute)
			a.mixed(300 * time.Millisecond)
			b := a.pod("b")
			b.takesOver(1, "--admin-per-epoch="+modes[1])
			if b.run.Logged("has no admin that answers") > 0 {
				t.Error("the old pod's admin wasn't found")
			}
			a.unharmed()
			a.stop()
			b.stop()
			b.nothingLeft()
		})
	}
}

// Rule 5 across pods.
func TestWorkersNeverFallAcrossPods(t *testing.T) {
	a := newStage(t)
	a.start("--concurrency", "3")
	b := a.pod("b")
	b.launch("--concurrency", "2")
	b.exit(2)
	b.logs("has 3: fewer workers than before reset connections")
	c := a.pod("c")
	c.takesOver(1) // by itself it follows
	if n := c.status().Concurrency; n != 3 {
		t.Errorf("%d workers", n)
	}
	d := a.pod("d")
	d.takesOver(2, "--concurrency", "4")
	d.logs("more workers than the other pod's epoch has")
	a.stop()
	c.stop()
	d.stop()
	d.nothingLeft()
}
