package real

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

func TestFact21ASuccessorThatDiesWhileItsParentDrainsStartsAgainAtTheSameNumber(t *testing.T) {
	s := newStage(t)
	s.start("--parent-shutdown-time", "60s")
	held := s.stream()
	for range 3 {
		s.hupOnce(1)
		dead := s.status().Of(1).PID
		s.kill(dead, syscall.SIGKILL)
		st := s.await("epoch 1 to serve again", func(st node.Status) bool {
			e := st.Of(1)
			return node.Serves(1)(st) && e.PID != dead
		})
		if e := st.Of(0); e == nil || e.State != "draining" {
			t.Fatalf("its parent: %+v", e)
		}
		s.flows(held)
		if got := s.tag(); got != "v1" {
			t.Errorf("it serves %q", got)
		}
	}
	// The fourth death is a crash loop: all end, the signal in the exit code.
	s.kill(s.status().Of(1).PID, syscall.SIGKILL)
	s.exit(128 + int(syscall.SIGKILL))
}

// hupOnce hands over to an epoch, unless it serves already.
func (s *stage) hupOnce(epoch int) {
	if s.status().Serving != epoch {
		s.hup()
	}
	s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
}

func TestFact6ALostAdminIsHealedByAHandoffWithTheLastGoodInput(t *testing.T) {
	s := newStage(t)
	s.start()
	s.mixed(500 * time.Millisecond)
	waiting := s.silentControlPlane()
	s.write("v2")
	s.until("the newcomer to wait for its control plane", func() bool { return waiting.Load() > 0 })
	s.kill(s.status().Of(1).PID, syscall.SIGKILL)
	st := s.await("the cure", node.Serves(1))
	if st.LastHandoff.From != 0 || st.LastFailure == nil {
		t.Errorf("%+v", st)
	}
	if got := s.tag(); got != "v1" {
		t.Errorf("healed with %q, not with the last good input", got)
	}
	if state, err := s.ready(st.AdminAddress); err != nil || !strings.Contains(state, "LIVE") {
		t.Errorf("the admin: %q, %v", state, err)
	}
	s.unharmed()
	s.stop()
}

// ready asks an admin, "host:port" or "unix:PATH".
func (s *stage) ready(admin string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if path, unix := strings.CutPrefix(admin, "unix:"); unix {
				return new(net.Dialer).DialContext(ctx, "unix", path)
			}
			return new(net.Dialer).DialContext(ctx, "tcp", admin)
		},
	}}
	resp, err := client.Get("http://admin/ready")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body := make([]byte, 64)
	n, _ := resp.Body.Read(body)
	return string(body[:n]), nil
}

func TestWithAnAdminPerEpochTheParentKeepsItsOwn(t *testing.T) {
	s := newStage(t)
	s.start("--admin-per-epoch", "--parent-shutdown-time", "60s")
	s.mixed(500 * time.Millisecond)
	held := s.stream()
	link := filepath.Join(s.StateDir, "admin.sock")
	for epoch := 1; epoch <= 2; epoch++ {
		s.write(fmt.Sprintf("v%d", epoch+1))
		st := s.await("the next epoch", node.Serves(epoch))
		if target, err := os.Readlink(link); err != nil || "unix:"+target != st.AdminAddress {
			t.Errorf("the link leads to %s (%v), the admin is %s", target, err, st.AdminAddress)
		}
	}
	for epoch := range 3 {
		if state, err := s.ready("unix:" + filepath.Join(s.StateDir, fmt.Sprintf("seat.%d", epoch), "admin.sock")); err != nil {
			t.Errorf("admin of epoch %d: %q, %v", epoch, state, err)
		}
	}
	s.flows(held)
	held.conn.Close() // nothing more to wait for
	s.unharmed()
	s.stop()
	if _, err := os.Lstat(link); !os.IsNotExist(err) {
		t.Errorf("the link is left behind: %v", err)
	}
}

func TestWithAnAdminPerEpochAFailedNewcomerTakesNoAdmin(t *testing.T) {
	s := newStage(t)
	s.start("--admin-per-epoch")
	admin := s.status().AdminAddress
	waiting := s.silentControlPlane()
	s.write("v2")
	s.until("the newcomer to wait for its control plane", func() bool { return waiting.Load() > 0 })
	s.kill(s.status().Of(1).PID, syscall.SIGKILL)
	s.await("it to be taken back", node.Alone(0))
	if state, err := s.ready(admin); err != nil || !strings.Contains(state, "LIVE") {
		t.Errorf("the serving epoch's admin: %q, %v", state, err)
	}
	s.stays(2*time.Second, "no cure is needed", node.Alone(0))
	s.stop()
}

func TestAnEnvoyThatHangsIsEndedAndNamed(t *testing.T) {
	s := newStage(t)
	s.start("--admin-unresponsive-deadline", "2s")
	s.kill(s.status().Of(0).PID, syscall.SIGSTOP)
	s.exit(128 + int(syscall.SIGKILL))
	s.inOrder("answers neither on its admin nor on its hot-restart socket", "the serving epoch ended by itself")
}

// A newcomer that failed late has taken the admin along; until the cure the
// serving epoch is silent there, and lives.
func TestFact6ASilentAdminAloneIsNoReasonToEndAnEpoch(t *testing.T) {
	s := newStage(t)
	s.start("--admin-unresponsive-deadline", "1s", "--handoff-deadline", "4s")
	held := s.stream()
	waiting := s.silentControlPlane()
	s.write("v2")
	s.until("the newcomer to wait for its control plane", func() bool { return waiting.Load() > 0 })
	s.await("it to be taken back", node.Alone(0))
	s.await("the cure", node.Serves(1))
	s.flows(held)
	s.stop()
}
