package real

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// Rule 7: a newcomer is taken back without harming anybody.

// rush is a few hundred new connections a second, kept ones, and streams that
// end within the drain time.
func rush(t load.Target) load.Plan {
	plan := load.Plan{Target: t, StreamDuration: 400 * time.Millisecond, Timeout: slowMachine, Kinds: []load.KindPlan{
		{Kind: load.New, Rate: 200}, {Kind: load.New, TLS: true, Rate: 40},
	}}
	for _, tls := range []bool{false, true} {
		plan.Kinds = append(plan.Kinds,
			load.KindPlan{Kind: load.KeepAlive, TLS: tls, Rate: 40}, load.KindPlan{Kind: load.H2, TLS: tls, Rate: 40},
			load.KindPlan{Kind: load.Stream, TLS: tls, Rate: 6}, load.KindPlan{Kind: load.Upload, TLS: tls, Rate: 4},
			load.KindPlan{Kind: load.H2Stream, TLS: tls, Rate: 6}, load.KindPlan{Kind: load.GRPC, TLS: tls, Rate: 6},
			load.KindPlan{Kind: load.TCP, TLS: tls, Rate: 15}, load.KindPlan{Kind: load.TCPHold, TLS: tls, Rate: 4})
	}
	return plan.ForThisMachine()
}

func TestRule7TenNewcomersTakenBackLiveUnderLoad(t *testing.T) {
	s := newStage(t)
	takenBackLive(s, 10)
}

// Older ones tell kept connections nothing at a plain drain.
func TestRule7OlderEnvoysTakenBackLiveUnderLoad(t *testing.T) {
	for _, version := range []string{"1.36.4", "1.39.3"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			takenBackLive(newStageWith(t, version), 2)
		})
	}
}

// takenBackLive has newcomers taken back that are LIVE and get their share of
// the connections, and then hands over.
func takenBackLive(s *stage, times int) {
	verify, gate := s.withheld()
	s.start("--verify-command", verify, "--handoff-deadline", "1500ms", "--drain-time", "1s", "--watch-config=false")
	s.write("v2")
	s.loadWith(rush(s.Target()))
	live := 0
	for range times {
		code, out := s.proxyctl("reload", "--wait")
		if code == 0 || !strings.Contains(out, "handoff deadline") {
			s.Fatalf("exit code %d: %s", code, out)
		}
		if strings.Contains(out, "LIVE, but not verified") {
			live++
		}
	}
	s.await("epoch 0 to serve as before", node.Serves(0))
	if live == 0 {
		s.Errorf("none of %d newcomers was LIVE in time: is this machine too busy?", times)
	}
	s.touch(gate)
	s.until("a clean handoff", func() bool { // in time: the deadline is short for a busy machine
		code, _ := s.proxyctl("reload", "--wait")
		return code == 0
	})
	s.await("epoch 0 to end", func(st node.Status) bool { return st.Of(0) == nil })
	report := s.unharmed()
	if n := report.Epochs(); n["v1"] == 0 || n["v2"] == 0 {
		s.Errorf("both should have answered: %v", n)
	}
	s.Logf("%d of %d newcomers were LIVE", live, times)
	s.stop()
}

// Fact 2: a newcomer that ends in its initialisation, in whichever way.
func TestRule7AndFact2ANewcomerThatEndsInInit(t *testing.T) {
	for _, c := range []struct {
		name string
		fail func(*stage) (heal func()) // makes the next newcomer fail; the result undoes it
		says []string
	}{
		{"Killed", killedInInit, []string{"ended by itself", "SIGKILL"}},
		{"BusyPort", busyPort, []string{"ended by itself", "exit code 1"}},
		{"CertificateGone", certificateGone, []string{"ended by itself", "exit code 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.wrapEnvoy(`case "$*" in *validate*) ;; *"--restart-epoch 0"*) ;; *) [ ! -e ` + s.Dir + `/gone ] || rm -f ` + s.Bootstrap.Certificate.CertPath + `;; esac`)
			s.start("--watch-config=false", "--handoff-deadline", "1m")
			s.loadWith(quiet(s.Target()))
			heal := c.fail(s)
			s.hup()
			if c.name == "Killed" {
				st := s.await("a newcomer in its initialisation", inState(1, "starting"))
				s.logs("shutting down admin due to child startup")
				s.kill(st.Of(1).PID, syscall.SIGKILL)
			}
			s.until("the newcomer to be gone", func() bool { return s.run.Logged("the serving epoch goes on") == 1 })
			st := s.status()
			if !failed(1, c.says...)(st) || st.LastFailure.Step != "start" || st.Serving != 0 || !st.Ready {
				t.Errorf("%+v", st.LastFailure)
			}
			s.logsOnce("flag is cleared")
			s.marker("after a failure", true)
			heal()
			s.write("v2")
			s.hup()
			s.await("epoch 1 to serve", node.Serves(1))
			s.awaitTag("v2")
			s.unharmed()
			s.stop()
		})
	}
}

func killedInInit(s *stage) func() {
	s.silentControlPlane()
	s.write("waits")
	return func() { s.Bootstrap.XDS = "" }
}

func busyPort(s *stage) func() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	s.writeWith("busy", listenerText("extra", l.Addr().(*net.TCPAddr).Port, ""))
	return func() { l.Close() }
}

// certificateGone removes the certificate between validate and start.
func certificateGone(s *stage) func() {
	path := s.Bootstrap.Certificate.CertPath
	kept, err := os.ReadFile(path)
	if err != nil {
		s.Fatal(err)
	}
	gone := filepath.Join(s.Dir, "gone")
	s.touch(gone)
	return func() {
		os.Remove(gone)
		if err := os.WriteFile(path, kept, 0o600); err != nil {
			s.Fatal(err)
		}
	}
}

// listenerText is one more listener of a bootstrap: TCP to the upstream's echo.
// more goes into it.
func listenerText(name string, port int, more string) string {
	return fmt.Sprintf(`
  - {name: %s, address: {socket_address: {address: 127.0.0.1, port_value: %s}}, %s
     filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: %[1]s, cluster: raw}}]}]}`,
		name, strconv.Itoa(port), more)
}

// clustersFollow separates further clusters from further listeners in what
// writeWith gets.
const clustersFollow = "\x00"

// writeWith writes the bootstrap with further listeners and clusters.
func (s *stage) writeWith(tag, more string) {
	s.Helper()
	s.Bootstrap.EpochTag = tag
	data, err := s.Bootstrap.YAML()
	if err != nil {
		s.Fatal(err)
	}
	text := string(data)
	listeners, clusters, _ := strings.Cut(more, clustersFollow)
	for _, insert := range [][2]string{{"\n  listeners:", listeners}, {"\n  clusters:", clusters}} {
		if !strings.Contains(text, insert[0]) {
			s.Fatalf("no %q in\n%s", insert[0], text)
		}
		text = strings.Replace(text, insert[0], insert[0]+insert[1], 1)
	}
	if err := s.WriteRaw([]byte(text)); err != nil {
		s.Fatal(err)
	}
}
