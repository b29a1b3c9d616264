package xds

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/router/config"
)

// node: every Envoy of the pod is told the same.
const node = "pod"

type oneNode struct{}

func (oneNode) ID(*core.Node) string { return node }

// Server is the control plane of one pod's Envoy.
type Server struct {
	grpc  *grpc.Server
	cache cache.SnapshotCache
	proc  envoy.Address
	log   *slog.Logger
	stop  context.CancelFunc

	mu      sync.Mutex
	version string
	acked   bool // Envoy has taken listeners, of whatever version
	refused int
}

// New serves nobody yet. proc is where Envoy reaches the ext_proc server.
func New(proc envoy.Address, log *slog.Logger) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{grpc: grpc.NewServer(), cache: cache.NewSnapshotCache(true, oneNode{}, nil), proc: proc, log: log, stop: stop}
	control := server.NewServer(ctx, s.cache, server.CallbackFuncs{StreamRequestFunc: s.requested})
	discovery.RegisterAggregatedDiscoveryServiceServer(s.grpc, control)
	return s
}

// Set tells Envoy a configuration. What can't be told is an error, and Envoy keeps
// what it has.
func (s *Server) Set(c config.Config) error {
	snapshot, err := Snapshot(c, s.proc)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.version = c.Hash
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.cache.SetSnapshot(ctx, node, snapshot); err != nil {
		return fmt.Errorf("xds: %w", err)
	}
	return nil
}

// requested sees each request, and with it what Envoy says of our last answer.
func (s *Server) requested(_ int64, r *discovery.DiscoveryRequest) error {
	if e := r.GetErrorDetail(); e != nil {
		s.mu.Lock()
		s.refused++
		s.mu.Unlock()
		s.log.Error("xds: Envoy refuses the configuration and keeps what it has", "type", r.GetTypeUrl(), "error", e.GetMessage())
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The first request of an Envoy that knew an earlier router says it, too.
	if r.GetTypeUrl() == resource.ListenerType && r.GetVersionInfo() == s.version {
		s.acked = true
	}
	return nil
}

// Acked tells whether Envoy has ever taken our listeners.
func (s *Server) Acked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acked
}

// Refused is how often Envoy has refused.
func (s *Server) Refused() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

// Serve blocks until Stop.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("xds: %w", err)
	}
	return nil
}

// Stop cuts Envoy off at once. It keeps its configuration.
func (s *Server) Stop() {
	s.stop()
	s.grpc.Stop()
}
