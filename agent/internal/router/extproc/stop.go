package extproc

import (
	"context"
	"fmt"
	"time"
)

// farewell is how long those that were refused in the end may take to hear it.
const farewell = 300 * time.Millisecond

// Stop ends the server: gracefully once no request is left, by force when ctx is
// over. Its error says how many requests were cut.
//
// Until no request is left it goes on taking new ones: after a GOAWAY, Envoy, which
// fails closed, would answer 500 to whoever still sends one on a connection that
// isn't closed yet.
func (s *Server) Stop(ctx context.Context) error {
	s.waitIdle(ctx)
	graceful := make(chan struct{})
	go func() { // ended by Stop below at the latest
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	select {
	case <-graceful:
		return nil
	case <-ctx.Done():
	}
	parked, running := s.refuseParked()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	s.waitIdle(last)
	s.grpc.Stop()
	<-graceful
	if parked+running == 0 {
		return nil
	}
	return fmt.Errorf("%d parked requests were refused and %d running ones were left", parked, running)
}

func (s *Server) waitIdle(ctx context.Context) {
	s.mu.Lock()
	idle := s.idle
	s.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// refuseParked returns how many there were, and how many run.
func (s *Server) refuseParked() (parked, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, p := range s.pools {
		parked += p.Stats().Parked
		p.Close()
	}
	return parked, max(s.active-parked, 0)
}
