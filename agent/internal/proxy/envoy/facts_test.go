package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The facts of docs/rules-and-facts.md that this package rests on, on real Envoys.

func TestFact2ANewcomerKilledInInitBlocksTheSegmentUntilRepaired(t *testing.T) {
	n := newNode(t, "")
	n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	if blocked, err := SegmentBlocked(n.baseID); blocked || err != nil {
		t.Fatalf("while serving: blocked %v, %v", blocked, err)
	}

	newcomer := n.start(t, 1, n.static(silent(silentControlPlane(t))))
	n.state(t, 1, "PRE_INITIALIZING")
	wantNil(t, newcomer.Signal(syscall.SIGKILL))
	newcomer.Wait()
	if blocked, err := SegmentBlocked(n.baseID); !blocked || err != nil {
		t.Fatalf("after the kill: blocked %v, %v", blocked, err)
	}
	if st := n.start(t, 1, n.static("")).Wait(); st.Code != 1 {
		t.Fatalf("a retry before the repair ended with %v, want exit code 1", st)
	}

	if repaired, err := RepairSegment(n.baseID); !repaired || err != nil {
		t.Fatalf("repaired %v, %v", repaired, err)
	}
	if !n.serves() {
		t.Error("the serving epoch does not answer")
	}
	n.start(t, 1, n.static(""))
	n.state(t, 1, "LIVE")
	if blocked, err := SegmentBlocked(n.baseID); blocked || err != nil {
		t.Errorf("at LIVE: blocked %v, %v", blocked, err)
	}
}

func TestFact5ValidateSeesTheFileAndNothingElse(t *testing.T) {
	n := newNode(t, "")
	busy, err := net.Listen("tcp", Address{Host: "127.0.0.1", Port: n.web}.String())
	wantNil(t, err)
	defer busy.Close()
	validate := func(text string) error {
		return n.binary.Validate(t.Context(), n.file(t, "v.yaml", text), []string{"--log-path", filepath.Join(n.dir, "log")})
	}
	wantNil(t, validate(n.static(""))) // with its port busy

	var refusal *ValidationError
	for text, words := range map[string][]string{
		n.static("bogus: 1"): {"no such field", "bogus"},
		n.static("  clusters: [{name: c, type: STATIC, lb_policy: NO_SUCH}]"): {"NO_SUCH"},
		"admin: [": {"yaml-cpp"},
	} {
		if err := validate(text); !errors.As(err, &refusal) {
			t.Errorf("not a refusal: %v", err)
		} else {
			wantError(t, err, words...)
		}
		if len(refusal.Output) > tellingAll {
			t.Errorf("%d bytes", len(refusal.Output))
		}
	}
	if _, err := SegmentBlocked(n.baseID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("validate has touched the segment: %v", err)
	}

	// Cut after the admin, it still is a bootstrap: ours finds nothing either.
	half, _, _ := strings.Cut(n.static(""), "static_resources")
	wantNil(t, validate(half))
	b, err := ParseBootstrap([]byte(half))
	if err != nil || b.Admin == nil {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestFact6TheParentLosesASharedAdminWhenItsChildStarts(t *testing.T) {
	n := newNode(t, "")
	parent := n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	newcomer := n.start(t, 1, n.static(silent(silentControlPlane(t))))
	if info := n.state(t, 1, ""); info.State == "LIVE" {
		t.Fatal("the newcomer should never be LIVE")
	}
	wantNil(t, newcomer.Signal(syscall.SIGKILL))
	newcomer.Wait()
	if _, err := n.admin.ServerInfo(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the parent's admin: %v", err)
	}
	select {
	case <-parent.Done():
		t.Error("the parent has ended")
	default:
	}
	if !n.serves() {
		t.Error("the parent does not serve")
	}
	conn := n.dial(t)
	defer conn.Close()
	eventually(t, "the kernel still counts the parent's connections", func() bool {
		count, err := OpenSockets(parent.Pid(), map[int]bool{n.web: true})
		return err == nil && count == 1
	})
}

func TestFact11HowEachFormOfDrainBehaves(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, version)
			n.start(t, 0, n.static(tcpProxy(n)))
			n.state(t, 0, "LIVE")
			ready := func(want string) {
				t.Helper()
				if got, err := n.admin.Ready(t.Context()); got != want || err != nil {
					t.Errorf("ready: %q, %v; want %q", got, err, want)
				}
			}
			n.countsConnections(t)

			wantNil(t, n.admin.DrainListeners(t.Context(), true, true))
			// 1.40 says it to nobody in the first second, older ones to everybody.
			eventually(t, "graceful&skip_exit: connection: close", func() bool { return n.get(t).Close })
			ready("LIVE")
			wantNil(t, n.admin.HealthcheckFail(t.Context()))
			ready("DRAINING")
			if _, err := n.admin.Resources(t.Context(), true); err != nil {
				t.Errorf("several queries while draining: %v", err) // older ones close after each
			}
			wantNil(t, n.admin.HealthcheckOK(t.Context()))
			ready("LIVE")

			wantNil(t, n.admin.DrainListeners(t.Context(), false, false))
			eventually(t, "plain: refused", func() bool { return !n.serves() })
			ready("LIVE")
			if _, err := n.admin.Connections(t.Context()); err != nil {
				t.Errorf("after the listeners have closed: %v", err)
			}
		})
	}
}

func TestFact12EnvoyRefusesJoinedAndRepeatedFlags(t *testing.T) {
	n := newNode(t, "")
	path := n.file(t, "v.yaml", n.static(""))
	for _, extra := range [][]string{{"--service-node=x"}, {"--service-node", "x", "--service-node", "x"}} {
		var refusal *ValidationError
		if err := n.binary.Validate(t.Context(), path, extra); !errors.As(err, &refusal) || strings.Contains(err.Error(), "USAGE") {
			t.Errorf("%q: %v", extra, err)
		}
		if _, err := CheckExtra(extra); err == nil {
			t.Errorf("%q is refused by Envoy, but not by us", extra)
		}
	}
	twice := []string{"--stats-tag", "a:b", "--stats-tag", "c:d", "-l", "warn"}
	if _, err := CheckExtra(twice); err != nil {
		t.Error(err)
	}
	wantNil(t, n.binary.Validate(t.Context(), path, twice))
}

func TestFact13EveryVersionSpeaksTheKnownProtocol(t *testing.T) {
	for _, version := range versions {
		b := realBinary(t, version)
		wantNil(t, b.Probe(t.Context()))
		if b.Version != version || b.HotRestartVersion != KnownHotRestartVersion {
			t.Errorf("%s: %q, %q", version, b.Version, b.HotRestartVersion)
		}
	}
}

func TestFact17TheStateStatSaysLiveTooEarly(t *testing.T) {
	n := newNode(t, "")
	n.start(t, 0, n.static(silent(silentControlPlane(t))))
	info := n.state(t, 0, "PRE_INITIALIZING")
	if info.Version != versionOf(t, n.binary) || info.Concurrency != 2 || info.HotRestartVersion != KnownHotRestartVersion {
		t.Errorf("%+v", info)
	}
	if got, err := n.admin.Ready(t.Context()); got != "PRE_INITIALIZING" || err != nil {
		t.Errorf("/ready: %q, %v", got, err)
	}
	s := n.admin.session()
	defer s.close()
	gauges, err := s.gauges(t.Context(), `^server\.state$`)
	if live, ok := gauges["server.state"]; err != nil || !ok || live != 0 {
		t.Errorf("server.state: %v, %v", gauges, err)
	}
}

func versionOf(t *testing.T, b *Binary) string {
	t.Helper()
	wantNil(t, b.Probe(t.Context()))
	return b.Version
}

// tcpProxy puts a TCP proxy in front of the web listener, at a pipe.
func tcpProxy(n *node) string {
	return fmt.Sprintf(`
  - {name: tcp, address: {pipe: {path: %s/tcp}}, filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: c}}]}]}
  clusters: [{name: c, type: STATIC}]
`, n.dir)
}

// Rule 12 on real epochs.
func TestRule12ServerInfoTellsTheNewEpochAtOnce(t *testing.T) {
	n := newNode(t, "")
	n.start(t, 0, n.static(""))
	n.state(t, 0, "LIVE")
	if _, err := n.admin.Ready(t.Context()); err != nil { // this connection stays with epoch 0
		t.Fatal(err)
	}
	n.start(t, 1, n.static(""))
	n.state(t, 1, "LIVE")
	if got, err := n.admin.Ready(t.Context()); got != "LIVE" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for range 5 {
		if info, err := n.admin.ServerInfo(t.Context()); err != nil || info.Epoch != 1 {
			t.Errorf("%+v, %v", info, err)
		}
	}
}
