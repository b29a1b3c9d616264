package xds

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	procfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"go.uber.org/goleak"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/router/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func sample() config.Config {
	return config.Config{
		Listeners: []config.Listener{
			{Name: "web", Address: "0.0.0.0:1", IdleTimeout: time.Second, TLS: &config.TLS{Certificate: "c", Key: "k"}, Routes: []config.Route{
				{Prefix: "/x", Cluster: "files"}, {Host: "a.example", Pool: "actors"}, {Pool: "actors"},
			}},
			{Name: "raw", Address: "[::]:2", TCP: "files"},
		},
		Pools:    []config.Pool{{Name: "actors", Queue: 1, Park: time.Hour, Protocol: config.HTTP1}},
		Clusters: []config.Cluster{{Name: "files", Endpoints: []string{"10.0.0.1:1"}, Protocol: config.HTTP2}},
		Hash:     "v1",
	}
}

var proc = envoy.Address{Host: "127.0.0.1", Port: 18001}

// Envoy takes it: test/router's. Here is what must never be lost of it.
func TestSnapshot(t *testing.T) {
	s, err := Snapshot(sample(), proc)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]int{resource.ListenerType: 2, resource.RouteType: 1, resource.ClusterType: 3} {
		if got := s.GetResources(kind); len(got) != want || s.GetVersion(kind) != "v1" {
			t.Errorf("%s: %d of version %s", kind, len(got), s.GetVersion(kind))
		}
	}
	m := &hcm.HttpConnectionManager{}
	web := s.GetResources(resource.ListenerType)["web"].(*listenerv3.Listener)
	if err := web.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	p := &procfilter.ExternalProcessor{}
	if err := m.GetHttpFilters()[0].GetTypedConfig().UnmarshalTo(p); err != nil {
		t.Fatal(err)
	}
	if p.GetFailureModeAllow() {
		t.Error("it fails open")
	}
	if park := time.Hour; p.GetMessageTimeout().AsDuration() <= park || m.GetStreamIdleTimeout().AsDuration() <= park {
		t.Errorf("Envoy gives up before the parking ends: %v, %v", p.GetMessageTimeout(), m.GetStreamIdleTimeout())
	}
}

// envoyClient is an Envoy's stream.
func envoyClient(t *testing.T, c config.Config) (*Server, discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient) {
	t.Helper()
	s := New(proc, slog.New(slog.DiscardHandler))
	if err := s.Set(c); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "x"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // joined by the cleanup
	conn, err := grpc.NewClient("unix:"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	stream, err := discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		conn.Close()
		s.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s, stream
}

func send(t *testing.T, stream discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient, version, nonce string, refusal *rpcstatus.Status) {
	t.Helper()
	if err := stream.Send(&discovery.DiscoveryRequest{
		Node: &core.Node{Id: "x"}, TypeUrl: resource.ListenerType, VersionInfo: version, ResponseNonce: nonce, ErrorDetail: refusal,
	}); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not: ", what)
		}
	}
}

func TestAcknowledgedAndRefused(t *testing.T) {
	s, stream := envoyClient(t, sample())
	send(t, stream, "", "", nil)
	got, err := stream.Recv()
	if err != nil || len(got.GetResources()) != 2 || got.GetVersionInfo() != "v1" {
		t.Fatal(got, err)
	}
	if s.Acked() {
		t.Error("acknowledged before it was")
	}
	send(t, stream, "v1", got.GetNonce(), nil)
	await(t, "acknowledged", s.Acked)
	next := sample()
	next.Hash, next.Listeners = "v2", next.Listeners[:1]
	if err := s.Set(next); err != nil {
		t.Fatal(err)
	}
	if got, err = stream.Recv(); err != nil || got.GetVersionInfo() != "v2" || len(got.GetResources()) != 1 {
		t.Fatal(got, err)
	}
	send(t, stream, "v1", got.GetNonce(), &rpcstatus.Status{Message: "no"})
	await(t, "refused", func() bool { return s.Refused() == 1 })
	if !s.Acked() { // Envoy still serves what it took
		t.Error("not acknowledged any more")
	}
}

// An Envoy that outlived a router has its configuration already.
func TestAnEnvoyThatKnowsItAlready(t *testing.T) {
	s, stream := envoyClient(t, sample())
	send(t, stream, "v1", "", nil)
	await(t, "acknowledged", s.Acked)
}
