package containers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"aether.internal/test/containers/actor"
	observe "aether.internal/test/node"
)

const udpPort, quicPort = 10082, 10445

// withUDP gives a pod a proxy of datagrams.
func (p *pod) withUDP(upstream string) {
	p.Helper()
	_, to, _ := strings.Cut(upstream, ":")
	p.listeners = fmt.Sprintf(`
  - name: udp
    address: {socket_address: {protocol: UDP, address: 127.0.0.1, port_value: %d}}
    listener_filters:
    - name: envoy.filters.udp_listener.udp_proxy
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig
        stat_prefix: udp
        matcher: {on_no_match: {action: {name: route, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route, cluster: udp}}}}`, udpPort)
	p.clusters = fmt.Sprintf(`
  - {name: udp, type: STATIC, load_assignment: {cluster_name: udp, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}}`, to)
	p.write(p.name)
}

// withHTTP3 gives a pod a QUIC listener before the upstream of the others.
func (p *pod) withHTTP3() {
	p.Helper()
	p.listeners = fmt.Sprintf(`
  - name: http3
    address: {socket_address: {protocol: UDP, address: 127.0.0.1, port_value: %d}}
    udp_listener_config: {quic_options: {}}
    filter_chains:
    - transport_socket:
        name: envoy.transport_sockets.quic
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.transport_sockets.quic.v3.QuicDownstreamTransport
          downstream_tls_context:
            common_tls_context: {tls_certificates: [{certificate_chain: {filename: %s}, private_key: {filename: %s}}]}
      filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: http3
          codec_type: HTTP3
          stream_idle_timeout: 0s
          http_filters: [{name: router, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}}]
          route_config:
            response_headers_to_add: [{header: {key: x-epoch, value: %s}}]
            virtual_hosts: [{name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: web, timeout: 0s}}]}]`,
		quicPort, p.bootstrap.Certificate.CertPath, p.bootstrap.Certificate.KeyPath, p.name)
	p.write(p.name)
}

// What a handoff across pods does to datagrams, counted from the old pod's last
// moment alone to the end of its Envoy, and after that. An old Envoy since 1.40
// forwards what isn't its own; an older one drops that until its timer ends it
// (fact 18).
func TestFact18UDPIsForwardedUntilTheOldPodsEnvoyEnds(t *testing.T) {
	n := newNode(t)
	lost := n.datagrams(newest)
	if all := lost.Old + lost.OldAnswered; lost.Old*20 > all {
		t.Errorf("%d of %d datagrams lost: more than one in twenty", lost.Old, all)
	}
}

func TestFact18UDPIsLostWhileAnOlderEnvoyDrains(t *testing.T) {
	n := newNode(t)
	lost := n.datagrams("1.36.4")
	if lost.Old < 100 {
		t.Errorf("only %d datagrams lost: the documentation says all that come before the old Envoy's end", lost.Old)
	}
}

// datagrams hands over from an Envoy of a version to the newest under load, and
// tells how many datagrams of old flows were lost and answered.
func (n *node) datagrams(version string) (sum actor.FlowCount) {
	n.Helper()
	up, err := n.actor.Addresses(n.Context())
	n.must(err)
	a, b := n.pod("a"), n.pod("b")
	a.version = version
	for _, p := range []*pod{a, b} {
		p.withUDP(up.UDP)
	}
	a.serves(0, "--drain-time", "1s", "--parent-shutdown-time", "5s")
	n.must(n.actor.Flows(n.Context(), actor.Flows{Address: fmt.Sprintf("127.0.0.1:%d", udpPort), Old: 8, Beat: 20 * time.Millisecond}))
	n.mixed(300 * time.Millisecond)
	var seen [4]actor.FlowCount
	seen[1] = n.after(seen[0])
	b.serves(1, "--drain-time", "1s", "--parent-shutdown-time", "5s")
	a.await("the old pod's Envoy to end by its own timer", func(st observe.Status) bool { return len(st.Epochs) == 0 })
	seen[2] = n.flowCount(false)
	n.after(seen[2])
	seen[3] = n.flowCount(true)
	for i, phase := range []string{"before", "from the new pod's start to the old Envoy's end", "after"} {
		old, fresh := seen[i+1].Old-seen[i].Old, seen[i+1].New-seen[i].New
		n.Logf("%s: %d datagrams of 8 flows, about %d lost; %d flows of one datagram each, about %d lost", phase,
			old, old-(seen[i+1].OldAnswered-seen[i].OldAnswered), fresh, fresh-(seen[i+1].NewAnswered-seen[i].NewAnswered))
	}
	n.unharmed("mixed")
	a.stop()
	b.stop()
	return actor.FlowCount{Old: seen[3].Old - seen[3].OldAnswered, OldAnswered: seen[3].OldAnswered}
}

func (n *node) flowCount(stop bool) actor.FlowCount {
	n.Helper()
	c, err := n.actor.FlowReport(n.Context(), stop)
	n.must(err)
	return c
}

// after waits until 50 more datagrams of each kind have been answered.
func (n *node) after(before actor.FlowCount) (now actor.FlowCount) {
	n.Helper()
	n.until("datagrams to be answered", func() bool {
		now = n.flowCount(false)
		return now.OldAnswered >= before.OldAnswered+50 && now.NewAnswered >= before.NewAnswered+50
	})
	return now
}

// What a handoff across pods does to HTTP/3: new connections and requests on kept
// ones, and streams that the old pod's Envoy has when its timer ends it.
func TestFact18HTTP3IsKeptButForStreamsThatOutliveTheOldEnvoy(t *testing.T) {
	n := newNode(t)
	a, b := n.pod("a"), n.pod("b")
	for _, p := range []*pod{a, b} {
		p.withHTTP3()
	}
	args := []string{"--drain-time", "1s", "--parent-shutdown-time", "4s", "--concurrency", "2"}
	a.serves(0, args...)
	n.must(n.actor.QUIC(t.Context(), actor.QUIC{
		URL: fmt.Sprintf("https://127.0.0.1:%d", quicPort), CA: n.bootstrap.Certificate.CAPath,
		Kept: 10, Beat: 50 * time.Millisecond, Stream: 7 * time.Second,
	}))
	n.mixed(300 * time.Millisecond)
	n.until("HTTP/3 from the old pod", func() bool {
		now := n.quic(false)
		return now.Epochs["a"] > 100 && now.StreamsBegun > 1
	})
	before := n.quic(false)
	b.serves(1, args...)
	a.await("the old pod's Envoy to end by its own timer", func(st observe.Status) bool { return len(st.Epochs) == 0 })
	during := n.quic(false)
	n.until("HTTP/3 from the new pod alone", func() bool { return n.quic(false).Epochs["b"] > during.Epochs["b"]+200 })
	after := n.quic(true)
	report := func(phase string, x, y actor.QUICCount) {
		t.Logf("%s: kept connections %d requests, %d failed; new connections %d, %d failed; streams %d, %d failed", phase,
			y.Kept-x.Kept, y.KeptFailed-x.KeptFailed, y.New-x.New, y.NewFailed-x.NewFailed, y.Streams-x.Streams, y.StreamsFailed-x.StreamsFailed)
	}
	report("before", actor.QUICCount{}, before)
	report("from the new pod's start to the old Envoy's end", before, during)
	report("after", during, after)
	t.Logf("failures: %v", after.Errors)
	if failed, all := after.KeptFailed+after.NewFailed, after.Kept+after.New; failed*20 > all {
		t.Errorf("%d of %d requests failed: more than one in twenty", failed, all)
	}
	if after.StreamsFailed == 0 {
		t.Error("a stream longer than the old Envoy's time was not cut: the documentation says it is")
	}
	if before.KeptFailed+before.NewFailed+before.StreamsFailed > 0 {
		t.Errorf("failures before the handoff: %v", before.Errors)
	}
	n.unharmed("mixed")
	a.stop()
	b.stop()
}

func (n *node) quic(stop bool) actor.QUICCount {
	n.Helper()
	c, err := n.actor.QUICReport(n.Context(), stop)
	n.must(err)
	return c
}
