package envoy

import (
	"fmt"
	"slices"
	"testing"
)

// Rule 2 on each kind of listener, port 0 and without a name included.
func TestRule2NothingIsMissingOnAHealthyEnvoy(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, version)
			config := n.static(kinds(n))
			boot, err := ParseBootstrap([]byte(config))
			wantNil(t, err)
			if len(boot.Listeners) != 9 {
				t.Fatalf("%+v", boot.Listeners)
			}
			n.start(t, 0, config)
			n.state(t, 0, "LIVE")
			got, err := n.admin.Resources(t.Context(), false)
			wantNil(t, err)
			wantSentences(t, Missing(boot, nil, got), nil)
			for _, l := range got.Active {
				for _, a := range l.Addresses() {
					if a.Path == "" && a.Port == 0 {
						t.Errorf("%s: port 0 is not resolved: %v", l.Name, a)
					}
				}
			}
			for i := range got.Active {
				less := Resources{Active: slices.Delete(slices.Clone(got.Active), i, i+1)}
				if missing := Missing(boot, nil, less); len(missing) != 1 {
					t.Errorf("without %q: %q", got.Active[i].Name, missing)
				}
			}
			n.countsConnections(t)
		})
	}
}

// kinds is eight more listeners.
func kinds(n *node) string {
	tcp := `filter_chains: [{filters: [{name: tcp, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: t, cluster: c}}]}]`
	return fmt.Sprintf(`
  - {name: zero, address: {socket_address: {address: 127.0.0.1, port_value: 0}}, %[1]s}
  - {address: {socket_address: {address: 127.0.0.2, port_value: 0}}, %[1]s}
  - {address: {pipe: {path: %[2]s/pipe}}, %[1]s}
  - {name: unbound, bind_to_port: false, address: {socket_address: {address: 127.0.0.3, port_value: 1}}, %[1]s}
  - {name: inner, internal_listener: {}, %[1]s}
  - {name: prefixed, stat_prefix: worker_7, address: {socket_address: {address: 127.0.0.4, port_value: 0}}, %[1]s}
  - {name: two, address: {socket_address: {address: 127.0.0.5, port_value: 0}}, additional_addresses: [{address: {socket_address: {address: 127.0.0.6, port_value: 0}}}], %[1]s}
  - {name: dup, bind_to_port: false, address: {socket_address: {address: 127.0.0.3, port_value: 2}}, %[1]s}
  clusters: [{name: c, type: STATIC}]
bootstrap_extensions: [{name: i, typed_config: {"@type": type.googleapis.com/envoy.extensions.bootstrap.internal_listener.v3.InternalListener}}]
`, tcp, n.dir)
}
