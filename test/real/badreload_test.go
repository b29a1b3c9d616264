package real

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"aether.internal/test/node"
)

// reloadsRefused goes through bad files under load: by SIGHUP and by a reload
// that waits, each is refused with its reason, and nobody notices.
func (s *stage) reloadsRefused(bad []badFile, restore func()) {
	s.Helper()
	for _, c := range bad {
		before := s.run.Logged("restart refused")
		c.put(s)
		s.hup()
		s.until(c.name+" to be refused", func() bool { return s.run.Logged("restart refused") > before })
		code, out := s.proxyctl("reload", "--wait")
		if code != 1 || !strings.Contains(out, "refused") {
			s.Errorf("%s: reload --wait: exit code %d: %s", c.name, code, out)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				s.Errorf("%s: the answer lacks %q: %s", c.name, want, out)
			}
		}
		st := s.status()
		if st.Serving != 0 || len(st.Epochs) != 1 || !s.markerFresh() {
			s.Errorf("%s: epoch 0 doesn't go on alone: %+v", c.name, st)
		}
		if st.LastFailure == nil || st.LastFailure.Epoch != 1 {
			s.Errorf("%s: the status has no failure of epoch 1: %+v", c.name, st.LastFailure)
		}
		restore()
	}
}

func TestRule1BadBootstrapsAreRefusedWhileAnEpochServes(t *testing.T) {
	s := newStage(t)
	s.startPatient("--watch-config=false")
	s.mixed(500 * time.Millisecond)
	s.reloadsRefused(badBootstraps(), func() { s.dropDirectory(s.ConfigPath) })
	s.write("v2")
	if code, out := s.proxyctl("reload", "--wait"); code != 0 || !strings.Contains(out, "committed: epoch 1") {
		s.Errorf("the next good bootstrap: exit code %d: %s", code, out)
	}
	s.awaitTag("v2")
	s.unharmed()
	s.stop()
	s.nothingLeft()
}

func TestRule1BadBinariesAreRefusedWhileAnEpochServes(t *testing.T) {
	s := newStage(t)
	s.startPatient("--watch-config=false")
	s.mixed(500 * time.Millisecond)
	s.reloadsRefused(badBinaries(), func() { s.dropDirectory(s.EnvoyPath) })
	s.must(s.InstallEnvoy(s.ctx, ""))
	if code, out := s.proxyctl("reload", "--wait"); code != 0 || !strings.Contains(out, "committed: epoch 1") {
		s.Errorf("the next good binary: exit code %d: %s", code, out)
	}
	s.unharmed()
	s.stop()
	s.nothingLeft()
}

// What validation can't see fails after the fork, and uses up no number: a port
// that is busy, a binary that dies when it is run for real.
func TestRule10AFailedTryUsesUpNoNumber(t *testing.T) {
	s := newStage(t)
	s.startPatient("--watch-config=false")
	s.mixed(500 * time.Millisecond)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	defer busy.Close()
	port := busy.Addr().(*net.TCPAddr).Port
	for _, c := range []badFile{
		{"a busy port", func(s *stage) { s.raw(s.withListenerAt(port)) }, []string{"failed", fmt.Sprint(port)}},
		{"a binary that dies", func(s *stage) {
			s.write("v1")
			s.wrapEnvoy(`case " $* " in *" --base-id "*) echo out of luck >&2; exit 3;; esac`)
		}, []string{"failed", "exit code 3", "out of luck"}},
	} {
		for range 2 {
			c.put(s)
			code, out := s.proxyctl("reload", "--wait")
			if code != 1 {
				s.Errorf("%s: exit code %d", c.name, code)
			}
			for _, want := range append(c.says, "epoch 1") {
				if !strings.Contains(out, want) {
					s.Errorf("%s: the answer lacks %q: %s", c.name, want, out)
				}
			}
			if st := s.status(); st.Serving != 0 || !s.markerFresh() {
				s.Errorf("%s: epoch 0 doesn't go on: %+v", c.name, st)
			}
		}
	}
	s.must(s.InstallEnvoy(s.ctx, ""))
	s.write("v2")
	if code, out := s.proxyctl("reload", "--wait"); code != 0 || !strings.Contains(out, "committed: epoch 1") {
		s.Errorf("the next good input: exit code %d: %s", code, out)
	}
	s.unharmed()
	s.stop()
	s.nothingLeft()
}

// withListenerAt adds a TCP listener to the bootstrap.
func (s *stage) withListenerAt(port int) []byte {
	return bytes.Replace(s.yaml(), []byte("  listeners:\n"), fmt.Appendf(nil, `  listeners:
  - name: busy
    address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: busy
          cluster: raw
`, port), 1)
}

// The same by the watcher alone: the broken file is refused, its repair is
// either nothing new or the next epoch.
func TestRule1AWatchedBadBootstrapIsRefused(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(500 * time.Millisecond)
	s.raw([]byte("admin: {nonsense: 1}\n"))
	s.logs("restart refused")
	s.write("v2")
	s.await("epoch 1 to serve", node.Serves(1))
	s.awaitTag("v2")
	s.unharmed()
	s.stop()
	s.nothingLeft()
}
