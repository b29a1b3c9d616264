// Package xds is a control plane for tests that misbehaves on demand: it is
// slow, silent or gone, it sends what Envoy refuses, or less than before. One
// aggregated stream (state of the world) over a Unix socket.
package xds

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Types of resources that State has.
const (
	Listeners = resource.ListenerType
	Clusters  = resource.ClusterType
	Secrets   = resource.SecretType
)

// State is what the control plane has and how it behaves.
type State struct {
	// Resources by type; a type without any is answered empty.
	Resources map[string][]proto.Message
	// Delay before each answer to a type's first request on a stream; the stream
	// does nothing else meanwhile, as in a control plane that hangs.
	Delay time.Duration
	// Silent types are never answered. The stream stays open.
	Silent map[string]bool
	// NewStreamsOnly leaves streams that are there already with what they have.
	NewStreamsOnly bool
}

// SilentFor is the set of the given types, for State.Silent.
func SilentFor(types ...string) map[string]bool {
	set := map[string]bool{}
	for _, t := range types {
		set[t] = true
	}
	return set
}

// Server is a control plane. It lives from New to Close, and listens between
// Up and Down.
type Server struct {
	path string

	mu       sync.Mutex // between the test and the streams
	state    State
	version  int
	changed  chan struct{} // closed when state is replaced
	rejected map[string]int
	streams  map[string]int // open ones, by the node's id
	grpc     *grpc.Server
	finished sync.WaitGroup
}

// New makes a control plane that will listen at a Unix socket. It is down.
func New(path string) *Server {
	return &Server{path: path, changed: make(chan struct{}), rejected: map[string]int{}, streams: map[string]int{}}
}

// Set replaces the state. Streams that were answered are sent what is new.
func (s *Server) Set(state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// Rejected counts the updates of a type that Envoys have refused (NACK).
func (s *Server) Rejected(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rejected[kind]
}

// Streams counts the open streams of a node's Envoys.
func (s *Server) Streams(node string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[node]
}

// count adds to a node's open streams.
func (s *Server) count(node string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[node] += n
}

// Up starts to listen.
func (s *Server) Up() error {
	if err := os.Remove(s.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.path, Net: "unix"})
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	l.SetUnlinkOnClose(false) // a dead one refuses
	s.grpc = grpc.NewServer()
	discovery.RegisterAggregatedDiscoveryServiceServer(s.grpc, &ads{Server: s})
	server := s.grpc
	s.finished.Go(func() { _ = server.Serve(l) }) // ends with Down
	return nil
}

// Down cuts all streams; connections are refused from then on.
func (s *Server) Down() {
	if s.grpc != nil {
		s.grpc.Stop()
		s.grpc = nil
	}
	s.finished.Wait()
}

// Close is Down, and removes the socket.
func (s *Server) Close() {
	s.Down()
	_ = os.Remove(s.path)
}

// now is the state, its version and what tells its end.
func (s *Server) now() (State, int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.version, s.changed
}

func (s *Server) reject(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rejected[kind]++
}
