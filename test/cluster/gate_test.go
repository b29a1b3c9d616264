package cluster

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// gate holds Envoys back while they initialise: they wait for the first health
// check of a cluster, which is answered when the gate is open.
type gate struct {
	port int
	mu   sync.Mutex
	open chan struct{} // closed when it is
}

// newGate is open.
func newGate(t *testing.T) *gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{port: l.Addr().(*net.TCPAddr).Port, open: make(chan struct{})}
	close(g.open)
	server := http.Server{Handler: http.HandlerFunc(g.answer), ReadHeaderTimeout: time.Minute}
	go server.Serve(l) // ends with Close
	t.Cleanup(func() { server.Close() })
	return g
}

func (g *gate) answer(_ http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	open := g.open
	g.mu.Unlock()
	select {
	case <-open:
	case <-r.Context().Done():
	}
}

// shut holds back every Envoy that starts from now on, until release is called.
func (g *gate) shut() (release func()) {
	open := make(chan struct{})
	g.mu.Lock()
	g.open = open
	g.mu.Unlock()
	return sync.OnceFunc(func() { close(open) })
}

// cluster is what a bootstrap has to have.
func (g *gate) cluster() map[string]any {
	return map[string]any{
		"name": "gate", "type": "STATIC", "connect_timeout": "5s",
		"load_assignment": map[string]any{"cluster_name": "gate", "endpoints": []any{map[string]any{
			"lb_endpoints": []any{map[string]any{"endpoint": map[string]any{"address": map[string]any{
				"socket_address": map[string]any{"address": "127.0.0.1", "port_value": g.port},
			}}}},
		}}},
		"health_checks": []any{map[string]any{
			"timeout": "120s", "interval": "600s", "no_traffic_interval": "600s",
			"healthy_threshold": 1, "unhealthy_threshold": 1, "http_health_check": map[string]any{"path": "/"},
		}},
	}
}
