package containers

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	tc "github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"aether.internal/test/containers/actor"
	"aether.internal/test/load"
	observe "aether.internal/test/node"
)

// A node's Envoy that listens inside of an application's network namespace, as
// an interception without iptables does: the new pod's gets the sockets, and
// nothing is dropped in there. Envoy needs CAP_SYS_ADMIN for that, so it is root.
func TestFact24ListenersInAnotherNetworkNamespaceAreHandedOver(t *testing.T) {
	n := newNodeOf(t, 0)
	if r := n.handsOverElsewhere(newest); r.Failures() > 0 {
		t.Errorf("%d failures of %d\n%s", r.Failures(), r.Started(), r.Table())
	}
}

// Before 1.40 the new Envoy doesn't get them but binds its own, and what waits in
// the old one's accept queue is reset (fact 24).
func TestFact24ListenersInAnotherNetworkNamespaceAreBoundAgainByAnOlderEnvoy(t *testing.T) {
	n := newNodeOf(t, 0)
	if r := n.handsOverElsewhere("1.36.4"); r.Failures() > 20 {
		t.Errorf("%d failures of %d: the documentation says a few\n%s", r.Failures(), r.Started(), r.Table())
	}
}

// handsOverElsewhere reports what became of the load in the other namespace.
func (n *node) handsOverElsewhere(version string) load.Report {
	n.Helper()
	elsewhere, client := n.application()
	a, b := n.pod("a"), n.pod("b")
	for _, p := range []*pod{a, b} {
		p.version = version
		p.user = "0:0"
		p.host = append(p.host, func(h *container.HostConfig) { h.CapAdd = []string{"SYS_ADMIN"} })
		p.binds = append(p.binds, elsewhere+":/netns/application")
		p.listeners = `
  - name: inside
    address: {socket_address: {address: 127.0.0.1, port_value: 10090, network_namespace_filepath: /netns/application}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: inside
          stream_idle_timeout: 0s
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config:
            response_headers_to_add: [{header: {key: x-epoch, value: ` + p.name + `}}]
            virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web, timeout: 0s}}]}]`
		p.write(p.name)
	}
	a.serves(0, "--parent-shutdown-time", "10s")
	_, err := client.Fetch(n.Context(), "http://127.0.0.1:10090/hello")
	n.must(err)
	if _, err := n.actor.Fetch(n.Context(), "http://127.0.0.1:10090/hello"); err == nil {
		n.Error("the listener is in the node's own namespace")
	}
	plan := load.Plan{Target: load.Target{HTTP: "127.0.0.1:10090"}, StreamDuration: 500 * time.Millisecond, Timeout: patience / 2}
	for _, kind := range []string{load.New, load.KeepAlive, load.Stream, load.Upload, load.H2, load.H2Stream, load.GRPC} {
		plan.Kinds = append(plan.Kinds, load.KindPlan{Kind: kind, Rate: 10, Connections: 1})
	}
	n.must(client.Load(n.Context(), actor.Load{Name: "inside", Plan: plan.ForThisMachine()}))
	n.mixed(300 * time.Millisecond)
	b.serves(1, "--parent-shutdown-time", "10s")
	a.await("the old pod's Envoy to end", func(st observe.Status) bool { return len(st.Epochs) == 0 })
	n.unharmed("mixed")
	r, err := client.Report(n.Context(), actor.Ask{Name: "inside", Stop: true})
	n.must(err)
	n.Logf("in the other namespace: %d operations, %d failures, answered by %v", r.Started(), r.Failures(), r.Epochs())
	if got := r.Epochs(); got["a"] == 0 || got["b"] == 0 {
		n.Errorf("answered by %v, want both pods", got)
	}
	a.logs(`"why":"limit"`) // nobody outside can count connections in there
	a.stop()
	b.stop()
	return r
}

// application is a network namespace beside the node's, as a path to mount, and
// an actor in it.
func (n *node) application() (path string, _ *actor.Client) {
	n.Helper()
	c := n.container(insideImage, confined(), binds(filepath.Join(n.dir, "shared")+":"+shared),
		tc.WithCmd(shared+"/application.sock"), tc.WithWaitStrategy(wait.ForLog(actor.Started).WithPollInterval(20*time.Millisecond)))
	st, err := c.Inspect(n.Context())
	n.must(err)
	client := actor.NewClient(filepath.Join(n.dir, "shared", "application.sock"))
	n.Cleanup(client.Close)
	return st.NetworkSettings.SandboxKey, client
}
