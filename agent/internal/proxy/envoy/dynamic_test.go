package envoy

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
)

// Fact 20: what the admin shows of dynamic resources, and what Missing makes of it.
func TestFact20WhatANewcomerLacksIsSeenInItsAdmin(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, version)
			lds := n.file(t, "lds.yaml", listeners("c"))
			config := n.static(fmt.Sprintf(`
dynamic_resources:
  lds_config: {path_config_source: {path: %s}, resource_api_version: V3}
  cds_config: {path_config_source: {path: %s}, resource_api_version: V3}
`, lds, n.file(t, "cds.yaml", clusters)))
			boot, err := ParseBootstrap([]byte(config))
			wantNil(t, err)
			n.start(t, 0, config)
			n.state(t, 0, "LIVE")
			want, err := n.admin.Resources(t.Context(), boot.Dynamic)
			wantNil(t, err)
			wantSentences(t, Missing(boot, &want, want), nil)
			if len(want.DynamicListeners) != 2 || len(want.DynamicClusters) != 1 || !want.DynamicListeners[0].Warm {
				t.Fatalf("%+v", want)
			}
			i := slices.IndexFunc(want.Active, func(l Listener) bool { return l.Name == "udp" })
			if i < 0 || !want.Active[i].UDP || want.Active[i].Address.Port == 0 {
				t.Errorf("active: %+v", want.Active)
			}

			// A rejected update counts as an answer: LIVE, with nothing.
			n.file(t, "lds.yaml", strings.ReplaceAll(listeners("c"), "stat_prefix: dyn", "stat_prefix: ''"))
			n.start(t, 1, config)
			n.state(t, 1, "LIVE")
			got, err := n.admin.Resources(t.Context(), boot.Dynamic)
			wantNil(t, err)
			wantSentences(t, Missing(boot, &want, got), []string{`dynamic listener "dyn", which the serving epoch has, is |StatPrefix`})
		})
	}
}

const clusters = `
resources:
- {"@type": type.googleapis.com/envoy.config.cluster.v3.Cluster, name: c, type: STATIC}
`

// listeners is an LDS file: a TCP listener and a UDP one.
func listeners(cluster string) string {
	return fmt.Sprintf(`
resources:
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: dyn
  address: {socket_address: {address: 127.0.0.1, port_value: 0}}
  filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: dyn, cluster: %s}}]}]
- "@type": type.googleapis.com/envoy.config.listener.v3.Listener
  name: udp
  address: {socket_address: {protocol: UDP, address: 127.0.0.1, port_value: 0}}
  udp_listener_config: {}
  listener_filters:
  - name: u
    typed_config:
      "@type": type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig
      stat_prefix: u
      matcher: {on_no_match: {action: {name: r, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route, cluster: c}}}}
`, cluster)
}

func TestConnectedOnRealControlPlanes(t *testing.T) {
	n := newNode(t, "")
	port := silentControlPlane(t)
	config := n.static(silent(port))
	p := n.start(t, 0, config)
	connected := func() bool {
		r, err := n.admin.Resources(t.Context(), true)
		return err == nil && r.Connected
	}
	eventually(t, "ADS connected", connected)
	wantNil(t, p.Signal(syscall.SIGKILL))
	p.Wait()

	// Without ADS the gauge has another name. (LDS asks once CDS was answered,
	// so there is no CDS here.)
	own := `{api_config_source: {api_type: GRPC, transport_api_version: V3, grpc_services: [{envoy_grpc: {cluster_name: xds}}]}`
	config = regexp.MustCompile(`(?m)^  (ads|cds)_config: .*$`).ReplaceAllString(config, "")
	config = strings.ReplaceAll(config, "{ads: {}", own)
	if b, err := ParseBootstrap([]byte(config)); err != nil || !b.ControlPlane || !b.WaitsForFirstFetch {
		t.Errorf("%+v, %v", b, err)
	}
	n.start(t, 0, config)
	eventually(t, "LDS connected", connected)
}

// silentControlPlane takes each stream and never answers.
func silentControlPlane(t *testing.T) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNil(t, err)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		<-stream.Context().Done()
		return nil
	}))
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }() // ends with Stop below
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().(*net.TCPAddr).Port
}
