package envoy

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/process"
	"aether.internal/tools/envoy/fetch"
)

var versions = []string{"1.36.4", "1.39.3", "1.40.0"}

// realBinary opens a real Envoy; "" is the default or $ENVOY.
func realBinary(t *testing.T, version string) *Binary {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real Envoy")
	}
	path, err := fetch.Path(t.Context(), version)
	wantNil(t, err)
	return open(t, path)
}

var baseIDs atomic.Uint32

// freeBaseID is one that no other test process of this machine uses.
func freeBaseID(t *testing.T) uint32 {
	id := 3_000_000 + uint32(os.Getpid())%20_000*10_000 + baseIDs.Add(1)
	t.Cleanup(func() { RemoveSegment(id) })
	return id
}

// node is what the epochs of one base id share.
type node struct {
	binary *Binary
	dir    string
	baseID uint32
	web    int // port of the listener in configWith
	admin  *Admin
}

func newNode(t *testing.T, version string) *node {
	n := &node{binary: realBinary(t, version), dir: shortDir(t), baseID: freeBaseID(t), web: freePort(t)}
	n.admin = NewAdmin(Address{Path: filepath.Join(n.dir, "admin")})
	t.Cleanup(n.admin.Close)
	return n
}

// static is a bootstrap with an HTTP listener that answers by itself, and
// whatever else is given.
func (n *node) static(more string) string {
	return fmt.Sprintf(`
node: {id: a, cluster: b}
admin: {address: {pipe: {path: %s}}}
static_resources:
  listeners:
  - name: web
    address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: http
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config: {virtual_hosts: [{name: v, domains: ["*"], routes: [{match: {prefix: /}, direct_response: {status: 200}}]}]}
%s`, n.admin.Address().Path, n.web, more)
}

// silent adds a control plane that takes connections at port and never
// answers: such an Envoy stays in its initialisation.
func silent(port int) string {
	return fmt.Sprintf(`
  clusters:
  - name: xds
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment: {cluster_name: xds, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %d}}}}]}]}
dynamic_resources:
  ads_config: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}
  lds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
  cds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
`, port)
}

func (n *node) file(t *testing.T, name, text string) string {
	path := filepath.Join(n.dir, name)
	write(t, path, text, 0o600)
	return path
}

// start starts an epoch in plain hot restart; its output is shown if the test fails.
func (n *node) start(t *testing.T, epoch int, config string, extra ...string) *process.Process {
	t.Helper()
	log, err := os.Create(filepath.Join(n.dir, fmt.Sprintf("log.%d.%d", epoch, time.Now().UnixNano())))
	wantNil(t, err)
	defer log.Close()
	launch := Launch{
		BaseID: n.baseID, Epoch: epoch, ConfigPath: n.file(t, fmt.Sprintf("%d.yaml", epoch), config),
		SocketPath: filepath.Join(n.dir, "hr"), Concurrency: 2,
		DrainTime: time.Second, ParentShutdownTime: time.Minute, Extra: append(extra, "-l", "warn"),
	}
	p, err := process.Start(process.Spec{Path: n.binary.Path, Exe: n.binary.File, Args: launch.Args(), Stdout: log, Stderr: log})
	wantNil(t, err)
	t.Cleanup(func() {
		p.Signal(syscall.SIGKILL)
		p.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("epoch %d:\n%s", epoch, text)
		}
	})
	return p
}

// state waits until the admin tells this epoch and, unless "", this state.
func (n *node) state(t *testing.T, epoch int, state string) ServerInfo {
	t.Helper()
	var info ServerInfo
	eventually(t, fmt.Sprintf("epoch %d %s", epoch, state), func() bool {
		got, err := n.admin.ServerInfo(t.Context())
		info = got
		return err == nil && got.Epoch == epoch && (state == "" || got.State == state)
	})
	return info
}

func (n *node) serves() bool {
	c, err := net.Dial("tcp", Address{Host: "127.0.0.1", Port: n.web}.String())
	if err != nil {
		return false
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	var head [12]byte
	c.Read(head[:])
	return strings.HasPrefix(string(head[:]), "HTTP/1.1 200")
}

// A TCP proxy's connection counts as well, once, on whatever worker it is; the
// admin's own doesn't (B33).
func (n *node) countsConnections(t *testing.T) {
	t.Helper()
	var conns []net.Conn
	for range 3 {
		conns = append(conns, n.dial(t))
	}
	counts := func(want int) func() bool {
		return func() bool {
			got, err := n.admin.Connections(t.Context())
			return err == nil && got == want
		}
	}
	eventually(t, "3 connections", counts(3))
	for _, c := range conns {
		c.Close()
	}
	eventually(t, "0 connections", counts(0))
}

func (n *node) dial(t *testing.T) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", Address{Host: "127.0.0.1", Port: n.web}.String())
	wantNil(t, err)
	return c
}

func (n *node) get(t *testing.T) *http.Response {
	t.Helper()
	c := n.dial(t)
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	wantNil(t, err)
	io.Copy(io.Discard, reply.Body)
	return reply
}

// eventually looks every few milliseconds, for 20 s.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !done() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// freePort is one that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNil(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func withTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
