// Package extproc is the gRPC server that Envoy asks, request by request, which
// worker it goes to. A stream lives as long as its request, and with it the
// worker's slot. A request that has no worker yet waits in its stream: it is
// parked in Envoy, and costs a few kilobytes.
package extproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"aether.internal/agent/internal/router/config"
	"aether.internal/agent/internal/router/parking"
)

const (
	// PoolKey is the stream's metadata in which Envoy's route names the pool.
	PoolKey = "x-atenet-pool"
	// WorkerHeader is the request's header that Envoy's cluster takes the worker's
	// address from. A client's own is overwritten.
	WorkerHeader = "x-atenet-worker"
)

// Readiness is the service name whose gRPC health says whether new requests
// should come; "" says whether the server works, which it does until the end.
const Readiness = "ready"

// Observer is told what becomes of requests. Reasons are those of Reason.
type Observer interface {
	Resumed(pool string, waited time.Duration)
	Rejected(pool, reason string)
}

// Server of ext_proc.
type Server struct {
	extproc.UnimplementedExternalProcessorServer

	grpc    *grpc.Server
	health  *health.Server
	observe Observer
	log     *slog.Logger

	mu     sync.Mutex
	pools  map[string]*parking.Pool
	going  map[string]bool // pools that the last configuration has left out
	closed bool
	active int
	idle   chan struct{} // closed while no stream is active
}

// New serves nobody yet.
func New(observe Observer, log *slog.Logger) *Server {
	s := &Server{
		// Each parked request is a stream of one connection.
		grpc:   grpc.NewServer(grpc.MaxConcurrentStreams(1<<31 - 1)),
		health: health.NewServer(), observe: observe, log: log,
		pools: map[string]*parking.Pool{}, idle: make(chan struct{}),
	}
	close(s.idle)
	extproc.RegisterExternalProcessorServer(s.grpc, s)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	s.SetReady(false)
	return s
}

// Serve blocks until the server is stopped.
func (s *Server) Serve(l net.Listener) error {
	if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("ext_proc: %w", err)
	}
	return nil
}

// SetReady changes the health of Readiness.
func (s *Server) SetReady(ready bool) {
	st := healthpb.HealthCheckResponse_NOT_SERVING
	if ready {
		st = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus(Readiness, st)
}

// Set changes the pools. One that is left out stays for another round: Envoy
// hears of it later than we do, and goes on sending requests there until then.
func (s *Server) Set(pools []config.Pool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, went := s.pools, s.going
	s.pools, s.going = map[string]*parking.Pool{}, map[string]bool{}
	for _, c := range pools {
		p := old[c.Name]
		if p == nil {
			p = parking.New(parking.Limits{})
			if s.closed {
				p.Close()
			}
		}
		delete(old, c.Name)
		p.Set(parking.Limits{Queue: c.Queue, Park: c.Park}, workers(c))
		s.pools[c.Name] = p
	}
	for name, p := range old {
		if went[name] {
			p.Close()
			continue
		}
		s.pools[name], s.going[name] = p, true
	}
}

func workers(c config.Pool) []parking.Worker {
	var all []parking.Worker
	for _, w := range c.Workers {
		all = append(all, parking.Worker{Address: w.Address, Slots: max(w.Slots, 1)})
	}
	return all
}

// Stats of each pool.
func (s *Server) Stats() map[string]parking.Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]parking.Stats{}
	for name, p := range s.pools {
		all[name] = p.Stats()
	}
	return all
}

// Process is one request's stream.
func (s *Server) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	s.enter()
	defer s.exit()
	var lease *parking.Lease
	defer func() {
		if lease != nil {
			lease.Release()
		}
	}()
	for {
		in, err := stream.Recv()
		if err != nil {
			return nil // the request is over, or its client has gone
		}
		out := proceed(in)
		if in.GetRequestHeaders() != nil && lease == nil {
			name := poolOf(stream.Context())
			if lease, err = s.acquire(stream.Context(), name); err != nil {
				out = s.reject(stream.Context(), name, err)
			} else {
				out = routed(lease.Address)
			}
		}
		if out == nil {
			return status.Errorf(codes.InvalidArgument, "a message of a kind that was not asked for: %T", in.GetRequest())
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

func (s *Server) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == 0 {
		s.idle = make(chan struct{})
	}
	s.active++
}

func (s *Server) exit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active--; s.active == 0 {
		close(s.idle)
	}
}

func poolOf(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	if names := md.Get(PoolKey); len(names) > 0 {
		return names[0]
	}
	return ""
}

var errNoPool = errors.New("the route names a pool that isn't there")

func (s *Server) acquire(ctx context.Context, name string) (*parking.Lease, error) {
	s.mu.Lock()
	pool := s.pools[name]
	s.mu.Unlock()
	if pool == nil {
		return nil, errNoPool
	}
	lease, err := pool.Acquire(ctx)
	if err == nil && lease.Parked {
		s.observe.Resumed(name, lease.Waited)
	}
	return lease, err
}

func (s *Server) reject(ctx context.Context, name string, err error) *extproc.ProcessingResponse {
	reason := Reason(err)
	s.observe.Rejected(name, reason)
	s.log.DebugContext(ctx, "request rejected", "pool", name, "reason", reason)
	return rejection(reason, err)
}
