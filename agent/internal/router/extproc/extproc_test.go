package extproc

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"

	"aether.internal/agent/internal/router/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notes is what an observer has seen.
type notes struct {
	mu   sync.Mutex
	seen []string
}

func (n *notes) add(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen = append(n.seen, what)
}

func (n *notes) Resumed(pool string, _ time.Duration) { n.add("resumed " + pool) }
func (n *notes) Rejected(pool, reason string)         { n.add("rejected " + pool + " " + reason) }

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.seen, ", ")
}

// place is a server and a connection to it, as an Envoy has.
type place struct {
	*testing.T
	*Server
	notes *notes
	conn  *grpc.ClientConn
}

func newPlace(t *testing.T, pools ...config.Pool) *place {
	t.Helper()
	n := &notes{}
	p := &place{t, New(n, slog.New(slog.DiscardHandler)), n, nil}
	p.Set(pools)
	l := bufconn.Listen(1 << 16)
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }() // joined by the cleanup
	var err error
	p.conn, err = grpc.NewClient("passthrough:x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.conn.Close()
		p.grpc.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return p
}

// call is one request's stream.
type call struct {
	*place
	stream extproc.ExternalProcessor_ProcessClient
	leave  context.CancelFunc
}

// call sends a request's headers.
func (p *place) call(pool string) *call {
	p.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(p.Context(), PoolKey, pool), 20*time.Second)
	p.Cleanup(cancel)
	stream, err := extproc.NewExternalProcessorClient(p.conn).Process(ctx)
	if err != nil {
		p.Fatal(err)
	}
	if err := stream.Send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{}}}); err != nil {
		p.Fatal(err)
	}
	return &call{p, stream, cancel}
}

func (c *call) answer() *extproc.ProcessingResponse {
	c.Helper()
	out, err := c.stream.Recv()
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// routed wants the worker's address.
func (c *call) routed(address string) {
	c.Helper()
	set := c.answer().GetRequestHeaders().GetResponse().GetHeaderMutation().GetSetHeaders()
	if len(set) != 1 || set[0].GetHeader().GetKey() != WorkerHeader || string(set[0].GetHeader().GetRawValue()) != address {
		c.Errorf("%v, want %s", set, address)
	}
}

func (c *call) refused(reason string) {
	c.Helper()
	out := c.answer().GetImmediateResponse()
	if out.GetStatus().GetCode() != 503 || out.GetDetails() != "atenet_"+reason || len(out.GetBody()) == 0 {
		c.Errorf("%v, want %s", out, reason)
	}
}

// over ends the request.
func (c *call) over() {
	c.Helper()
	if err := c.stream.CloseSend(); err != nil {
		c.Error(err)
	}
}

func (p *place) parked(pool string, n int) {
	p.Helper()
	for deadline := time.Now().Add(10 * time.Second); p.Stats()[pool].Parked != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("%+v, want %d parked", p.Stats()[pool], n)
		}
	}
}

func onePool(queue int, park time.Duration) config.Pool {
	return config.Pool{Name: "a", Queue: queue, Park: park, Workers: []config.Worker{{Address: "10.0.0.1:80"}}}
}

func TestRouteParkResume(t *testing.T) {
	p := newPlace(t, onePool(1, time.Minute))
	first := p.call("a")
	first.routed("10.0.0.1:80")
	second := p.call("a")
	p.parked("a", 1)
	p.call("a").refused(ReasonFull)
	p.call("b").refused(ReasonNoPool)
	first.over()
	second.routed("10.0.0.1:80")
	second.leave() // the client's end frees it as well
	third := p.call("a")
	third.routed("10.0.0.1:80")
	if got, want := p.notes.String(), "rejected a queue_full, rejected b no_pool, resumed a"; !strings.HasPrefix(got, want) {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestParkTimeout(t *testing.T) {
	p := newPlace(t, onePool(1, 10*time.Millisecond))
	p.call("a").routed("10.0.0.1:80")
	p.call("a").refused(ReasonTimeout)
}

// What else Envoy sends is let through; what it wasn't asked for is an error.
func TestTheRestOfARequest(t *testing.T) {
	c := newPlace(t, onePool(1, time.Minute)).call("a")
	c.routed("10.0.0.1:80")
	for _, in := range []*extproc.ProcessingRequest{
		{Request: &extproc.ProcessingRequest_ResponseHeaders{ResponseHeaders: &extproc.HttpHeaders{}}},
		{Request: &extproc.ProcessingRequest_RequestTrailers{RequestTrailers: &extproc.HttpTrailers{}}},
		{Request: &extproc.ProcessingRequest_ResponseTrailers{ResponseTrailers: &extproc.HttpTrailers{}}},
		{Request: &extproc.ProcessingRequest_RequestHeaders{RequestHeaders: &extproc.HttpHeaders{}}},
	} {
		if err := c.stream.Send(in); err != nil {
			t.Fatal(err)
		}
		if out := c.answer(); out.GetResponse() == nil || out.GetImmediateResponse() != nil {
			t.Errorf("%v: %v", in, out)
		}
	}
	if err := c.stream.Send(&extproc.ProcessingRequest{Request: &extproc.ProcessingRequest_RequestBody{RequestBody: &extproc.HttpBody{}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.stream.Recv(); err == nil {
		t.Error("a body was taken")
	}
}

// Stop lets a parked request resume and end; no GOAWAY before.
func TestStopWaitsForWhoIsThere(t *testing.T) {
	p := newPlace(t, onePool(5, time.Minute))
	running, parked := p.call("a"), (*call)(nil)
	running.routed("10.0.0.1:80")
	parked = p.call("a")
	p.parked("a", 1)
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(t.Context()) }() // joined below
	late := p.call("a")                            // on a connection that isn't closed yet
	p.parked("a", 2)
	running.over()
	parked.routed("10.0.0.1:80")
	parked.over()
	late.routed("10.0.0.1:80")
	select {
	case err := <-stopped:
		t.Fatalf("stopped early: %v", err)
	default:
	}
	late.over()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// Who is still there in the end is refused if parked, and counted.
func TestStopByForce(t *testing.T) {
	p := newPlace(t, onePool(5, time.Minute))
	running := p.call("a")
	running.routed("10.0.0.1:80")
	parked := p.call("a")
	p.parked("a", 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- p.Stop(ctx) }() // joined below
	parked.refused(ReasonClosed)
	err := <-stopped
	if err == nil || !strings.Contains(err.Error(), "1 parked requests were refused and 1 running ones were left") {
		t.Error(err)
	}
	if _, err := running.stream.Recv(); err == nil {
		t.Error("it goes on")
	}
}

func TestHealth(t *testing.T) {
	p := newPlace(t)
	ask := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		out, err := healthpb.NewHealthClient(p.conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return out.GetStatus()
	}
	for _, ready := range []bool{false, true, false} {
		p.SetReady(ready)
		if got := ask(Readiness) == healthpb.HealthCheckResponse_SERVING; got != ready {
			t.Errorf("ready %t", got)
		}
		if ask("") != healthpb.HealthCheckResponse_SERVING { // Envoy may check it, and must go on asking
			t.Error("not serving")
		}
	}
}

// Envoy hears later than we do that a pool is gone; in the end nobody waits in vain.
func TestAPoolThatIsLeftOut(t *testing.T) {
	p := newPlace(t, onePool(5, time.Minute))
	running := p.call("a")
	running.routed("10.0.0.1:80")
	parked := p.call("a")
	p.parked("a", 1)
	p.Set(nil)
	late := p.call("a") // by an Envoy that hasn't heard
	p.parked("a", 2)
	running.over()
	parked.routed("10.0.0.1:80")
	p.Set(nil)
	late.refused(ReasonClosed)
	parked.over()
}
