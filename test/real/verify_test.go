package real

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aether.internal/test/load/bootstrap"
	"aether.internal/test/node"
)

// Until the commit both epochs accept on the same sockets, and each answers
// with its own bootstrap (fact 28).
func TestRule2AndFact28BothEpochsAnswerWhileTheCommitIsWithheld(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	verify, gate := s.withheld()
	s.start("--verify-command", verify)
	s.loadWith(quiet(s.Target()))
	s.write("v2")
	s.await("the newcomer to be LIVE", inState(1, "live"))
	seen := map[string]int{}
	s.stays(5*time.Second, "the commit is withheld", func(st node.Status) bool {
		seen[s.tag()]++
		return st.Serving == 0 && inState(1, "live")(st)
	})
	if seen["v1"] < 10 || seen["v2"] < 10 || len(seen) != 2 {
		t.Errorf("both epochs should have answered: %v", seen)
	}
	s.touch(gate)
	s.await("epoch 1 to serve", node.Serves(1))
	s.await("epoch 0 to end", node.Alone(1))
	for range 20 {
		if tag := s.tag(); tag != "v2" {
			t.Errorf("%q answers after the commit", tag)
		}
	}
	s.unharmed()
	s.stop()
}

// A new bootstrap adds, removes and moves listeners: no port that both have is
// ever refused, and what is gone is gone only after the commit.
func TestRule2ListenersAddedRemovedAndMoved(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ports, err := bootstrap.FreePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	removed, old, moved, added := ports[0], ports[1], ports[2], ports[3]
	s.writeWith("v1", listenerText("removed", removed, "")+listenerText("moving", old, ""))
	verify, gate := s.withheld()
	s.start("--verify-command", verify)
	s.loadWith(quiet(s.Target()))
	onRemoved, onOld := s.dialPort(removed), s.dialPort(old)

	s.writeWith("v2", listenerText("added", added, "")+listenerText("moving", moved, ""))
	s.await("the newcomer to be LIVE", inState(1, "live"))
	for _, port := range ports { // the parent's and the newcomer's
		s.reaches(port)
	}
	s.touch(gate)
	s.await("epoch 1 to serve", node.Serves(1))
	s.until("removed and old ports to refuse", func() bool { return refuses(removed) && refuses(old) })
	onRemoved.echoes()
	onOld.echoes()
	s.reaches(added)
	s.reaches(moved)
	onRemoved.Close()
	onOld.Close()
	s.await("epoch 0 to end", node.Alone(1))
	s.unharmed()
	s.stop()
}

// One connection through a TCP listener.
type line struct {
	net.Conn
	*stage
}

func (s *stage) dialPort(port int) line {
	s.Helper()
	c, err := net.DialTimeout("tcp", loopback(port), patience)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return line{c, s}
}

func (l line) echoes() {
	l.Helper()
	_ = l.SetDeadline(time.Now().Add(patience))
	got := make([]byte, 4)
	if _, err := l.Write([]byte("ping")); err != nil {
		l.Error(err)
	} else if _, err := io.ReadFull(l, got); err != nil || string(got) != "ping" {
		l.Errorf("port %s: %q, %v", l.RemoteAddr(), got, err)
	}
}

// reaches makes a connection and closes it.
func (s *stage) reaches(port int) {
	s.Helper()
	l := s.dialPort(port)
	l.echoes()
	l.Close()
}

func refuses(port int) bool {
	c, err := net.DialTimeout("tcp", loopback(port), time.Second)
	if err == nil {
		c.Close()
	}
	return err != nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// B23: the supervisor follows the admin of the newest bootstrap.
func TestRule12AdminPortChangedByTheNewBootstrap(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.loadWith(quiet(s.Target()))
	for epoch := 1; epoch <= 2; epoch++ {
		ports, err := bootstrap.FreePorts(1)
		if err != nil {
			t.Fatal(err)
		}
		s.Bootstrap.Admin = loopback(ports[0])
		s.write(fmt.Sprintf("v%d", epoch+1))
		s.adminTells(epoch)
	}
	s.unharmed()
	s.stop()
}

// B23, and back to a port.
func TestRule12AdminOnAUnixSocketForThreeRestarts(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	port := s.Bootstrap.Admin
	s.Bootstrap.Admin = "unix:" + filepath.Join(s.Dir, "admin.sock")
	s.write("v1")
	s.start("--drain-time", "1s")
	s.loadWith(quiet(s.Target()))
	for epoch := 1; epoch <= 4; epoch++ {
		if epoch == 4 {
			s.Bootstrap.Admin = port
		}
		s.write(fmt.Sprintf("v%d", epoch+1))
		s.adminTells(epoch)
	}
	s.unharmed()
	s.stop()
}

// adminTells waits until an epoch serves and no other lives, and asks the
// bootstrap's admin who it is.
func (s *stage) adminTells(epoch int) serverInfo {
	s.Helper()
	st := s.await(fmt.Sprintf("only epoch %d to live", epoch), node.Alone(epoch))
	if st.AdminAddress != s.Bootstrap.Admin {
		s.Errorf("status names admin %s, want %s", st.AdminAddress, s.Bootstrap.Admin)
	}
	var info serverInfo
	body, err := s.admin("/server_info")
	if err == nil {
		err = json.Unmarshal([]byte(body), &info)
	}
	if err != nil || info.State != "LIVE" || info.Options.Epoch != epoch {
		s.Errorf("epoch %d: %+v, %v", epoch, info, err)
	}
	return info
}

type serverInfo struct {
	State   string `json:"state"`
	Options struct {
		Epoch       int `json:"restart_epoch"`
		Concurrency int `json:"concurrency"`
	} `json:"command_line_options"`
}

// B27: of two listeners at one port only one is bound.
func TestRule2TwoListenersOfWhichOneIsUnbound(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	ports, err := bootstrap.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	unbound := strings.Replace(listenerText("unbound", ports[0], "bind_to_port: false,"), "127.0.0.1", "0.0.0.0", 1)
	two := unbound + listenerText("bound", ports[0], "")
	s.writeWith("v1", two)
	s.start("--drain-time", "1s")
	s.loadWith(quiet(s.Target()))
	for epoch := 1; epoch <= 3; epoch++ {
		s.writeWith(fmt.Sprintf("v%d", epoch+1), two)
		s.await(fmt.Sprintf("only epoch %d to live", epoch), node.Alone(epoch))
		s.reaches(ports[0])
	}
	s.unharmed()
	s.stop()
}

// Rule 5: all epochs have the same number of workers.
func TestRule5ConcurrencyIsPinned(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want int // 0: whatever it is
	}{
		"AmongEnvoysArguments": {[]string{"--", "--concurrency", "3"}, 3},
		"OurFlag":              {[]string{"--concurrency", "3"}, 3},
		"ByTheMachine":         {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.start(c.args...)
			want := s.status().Concurrency
			if c.want != 0 && want != c.want || want < 1 {
				t.Errorf("status says %d, want %d", want, c.want)
			}
			for epoch := range 3 {
				if got := s.adminTells(epoch).Options.Concurrency; got != want {
					t.Errorf("epoch %d has %d workers, want %d", epoch, got, want)
				}
				s.hup()
				s.await("the next epoch to serve", node.Serves(epoch+1))
			}
			for _, l := range s.run.Lines() {
				if l.Message != "doctor" && strings.Contains(l.Raw, "concurrency") {
					t.Errorf("a line complains of concurrency: %s", l.Raw)
				}
			}
			s.stop()
		})
	}
}
