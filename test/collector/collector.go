// Package collector is an OTLP collector for tests: a real gRPC server that
// keeps what it is sent, and can be slow or refuse.
package collector

import (
	"context"
	"net"
	"sync"

	metricsrpc "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracerpc "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector is a running server.
type Collector struct {
	// Endpoint is its host:port.
	Endpoint string
	// Answer, when set, decides each export's answer; it may take its time. Nothing
	// is kept of an export whose answer is an error. Set before the first export.
	Answer func(ctx context.Context) error

	server *grpc.Server
	served chan struct{}

	mu       sync.Mutex
	news     chan struct{} // closed at the next export
	metrics  []*metrics.ResourceMetrics
	spans    []*spans.Span
	resource *resource.Resource
}

// Start listens on a loopback port.
func Start() (*Collector, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Collector{
		Endpoint: listener.Addr().String(), server: grpc.NewServer(), served: make(chan struct{}), news: make(chan struct{}),
	}
	metricsrpc.RegisterMetricsServiceServer(c.server, metricsServer{c: c})
	tracerpc.RegisterTraceServiceServer(c.server, traceServer{c: c})
	go func() { // joined by Close
		defer close(c.served)
		_ = c.server.Serve(listener) // nil after Stop
	}()
	return c, nil
}

// Close ends it; exports that it hasn't answered fail.
func (c *Collector) Close() {
	c.server.Stop()
	<-c.served
}

// Await waits until got says so; it is asked again after each export.
func (c *Collector) Await(ctx context.Context, got func(*Received) bool) error {
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		if got(c.Received()) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Received is all that was kept so far.
func (c *Collector) Received() *Received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Received{Exports: append([]*metrics.ResourceMetrics(nil), c.metrics...), Spans: append([]*spans.Span(nil), c.spans...), Resource: c.resource}
}

func (c *Collector) export(ctx context.Context, keep func()) error {
	if c.Answer != nil {
		if err := c.Answer(ctx); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	keep()
	close(c.news)
	c.news = make(chan struct{})
	return nil
}

type metricsServer struct {
	metricsrpc.UnimplementedMetricsServiceServer
	c *Collector
}

func (s metricsServer) Export(ctx context.Context, req *metricsrpc.ExportMetricsServiceRequest) (*metricsrpc.ExportMetricsServiceResponse, error) {
	err := s.c.export(ctx, func() {
		for _, r := range req.ResourceMetrics {
			s.c.metrics, s.c.resource = append(s.c.metrics, r), r.Resource
		}
	})
	return &metricsrpc.ExportMetricsServiceResponse{}, err
}

type traceServer struct {
	tracerpc.UnimplementedTraceServiceServer
	c *Collector
}

func (s traceServer) Export(ctx context.Context, req *tracerpc.ExportTraceServiceRequest) (*tracerpc.ExportTraceServiceResponse, error) {
	err := s.c.export(ctx, func() {
		for _, r := range req.ResourceSpans {
			s.c.resource = r.Resource
			for _, scope := range r.ScopeSpans {
				s.c.spans = append(s.c.spans, scope.Spans...)
			}
		}
	})
	return &tracerpc.ExportTraceServiceResponse{}, err
}
