package xds

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"go.uber.org/goleak"
	status "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is an Envoy's side of a stream.
type client struct {
	*testing.T
	*Server
	grpc discovery.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	got  chan *discovery.DiscoveryResponse // closed when the stream has ended
}

func newServer(t *testing.T, st State) *Server {
	t.Helper()
	s := New(filepath.Join(t.TempDir(), "s"))
	s.Set(st)
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *Server) connect(t *testing.T) *client {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	c := &client{T: t, Server: s, got: make(chan *discovery.DiscoveryResponse)}
	if c.grpc, err = discovery.NewAggregatedDiscoveryServiceClient(conn).StreamAggregatedResources(ctx); err != nil {
		t.Fatal(err)
	}
	go c.receive() // ends with the stream
	t.Cleanup(func() {
		cancel()
		conn.Close()
		for range c.got {
		}
	})
	return c
}

func (c *client) receive() {
	defer close(c.got)
	for {
		resp, err := c.grpc.Recv()
		if err != nil {
			return
		}
		c.got <- resp
	}
}

func (c *client) sends(kind, nonce string, refusal *status.Status) {
	c.Helper()
	req := &discovery.DiscoveryRequest{Node: &core.Node{Id: "x"}, TypeUrl: kind, ResponseNonce: nonce, ErrorDetail: refusal}
	if err := c.grpc.Send(req); err != nil {
		c.Fatal(err)
	}
}

// gets waits for an answer with n resources, and acknowledges it.
func (c *client) gets(kind string, n int) *discovery.DiscoveryResponse {
	c.Helper()
	resp, open := <-c.got
	if !open || resp.GetTypeUrl() != kind || len(resp.GetResources()) != n {
		c.Fatalf("got %v, want %d of %s", resp, n, kind)
	}
	c.sends(kind, resp.GetNonce(), nil)
	return resp
}

// getsNothing waits a while.
func (c *client) getsNothing() {
	c.Helper()
	select {
	case resp, open := <-c.got:
		c.Fatalf("got %v (open %v)", resp, open)
	case <-time.After(50 * time.Millisecond):
	}
}

func TestHealthyAnswersAndPushesWhatChanges(t *testing.T) {
	s := newServer(t, Healthy("127.0.0.1:1", 2, 3))
	c := s.connect(t)
	c.sends(Clusters, "", nil)
	c.gets(Clusters, 2)
	c.getsNothing() // an acknowledgement needs no answer
	c.sends(Listeners, "", nil)
	first := c.gets(Listeners, 2)
	s.Set(Healthy("127.0.0.1:1", 2))
	c.gets(Clusters, 1)
	if second := c.gets(Listeners, 1); second.GetVersionInfo() == first.GetVersionInfo() {
		t.Error("a new version needs a new name")
	}
	s.Set(State{})
	c.gets(Clusters, 0)
	c.gets(Listeners, 0)
}

func TestNewStreamsOnly(t *testing.T) {
	st := Healthy("127.0.0.1:1", 2, 3)
	s := newServer(t, st)
	before := s.connect(t)
	before.sends(Listeners, "", nil)
	before.gets(Listeners, 2)
	fewer := st.Fewer(Listeners, 1)
	fewer.NewStreamsOnly = true
	s.Set(fewer)
	after := s.connect(t)
	after.sends(Listeners, "", nil)
	after.gets(Listeners, 1)
	before.getsNothing()
	s.Set(st)
	before.gets(Listeners, 2)
	after.gets(Listeners, 2)
}

func TestSilentForOneTypeOnly(t *testing.T) {
	st := Healthy("127.0.0.1:1", 2)
	st.Silent = SilentFor(Listeners)
	s := newServer(t, st)
	c := s.connect(t)
	c.sends(Listeners, "", nil)
	c.sends(Clusters, "", nil)
	c.gets(Clusters, 1)
	c.getsNothing()
	s.Set(Healthy("127.0.0.1:1", 2))
	c.gets(Clusters, 1)
	c.gets(Listeners, 1)
}

func TestSlow(t *testing.T) {
	st := Healthy("127.0.0.1:1", 2)
	st.Delay = 100 * time.Millisecond
	c := newServer(t, st).connect(t)
	began := time.Now()
	c.sends(Clusters, "", nil)
	c.gets(Clusters, 1)
	c.sends(Listeners, "", nil)
	c.gets(Listeners, 1)
	if took := time.Since(began); took < 2*st.Delay {
		t.Errorf("both after %v", took)
	}
}

// A refusal is counted, not answered.
func TestRefusalsAreCounted(t *testing.T) {
	st := Healthy("127.0.0.1:1", 2)
	s := newServer(t, st.Broken(Listeners))
	c := s.connect(t)
	c.sends(Listeners, "", nil)
	resp := <-c.got
	c.sends(Listeners, resp.GetNonce(), &status.Status{Code: 3, Message: "no"})
	c.getsNothing()
	if n := s.Rejected(Listeners); n != 1 {
		t.Errorf("%d refusals", n)
	}
	s.Set(st)
	c.gets(Listeners, 1)
}

func TestDownCutsAndRefusesUntilUp(t *testing.T) {
	s := newServer(t, Healthy("127.0.0.1:1", 2))
	c := s.connect(t)
	c.sends(Clusters, "", nil)
	c.gets(Clusters, 1)
	s.Down()
	if resp, open := <-c.got; open {
		t.Errorf("got %v", resp)
	}
	s.Down() // again
	if err := s.Up(); err != nil {
		t.Fatal(err)
	}
	c = s.connect(t)
	c.sends(Clusters, "", nil)
	c.gets(Clusters, 1)
}

// What is broken is broken in a copy.
func TestBrokenAndFewerLeaveTheHealthyOneAlone(t *testing.T) {
	st := Healthy("127.0.0.1:1", 2, 3)
	for _, kind := range []string{Listeners, Clusters} {
		broken, fewer := st.Broken(kind), st.Fewer(kind, 1)
		if len(broken.Resources[kind]) != 2 || len(fewer.Resources[kind]) != 1 || len(st.Resources[kind]) != 2 {
			t.Errorf("%s: %d, %d, %d", kind, len(broken.Resources[kind]), len(fewer.Resources[kind]), len(st.Resources[kind]))
		}
		if st.Resources[kind][0] == broken.Resources[kind][0] {
			t.Errorf("%s: not a copy", kind)
		}
	}
}

func TestStreamsAreCountedByNode(t *testing.T) {
	s := newServer(t, State{})
	for n := 1; n <= 2; n++ {
		c := s.connect(t)
		c.sends(Secrets, "", nil)
		c.gets(Secrets, 0)
		if got := s.Streams("x"); got != n {
			t.Errorf("%d streams, want %d", got, n)
		}
	}
	if got := s.Streams("other"); got != 0 {
		t.Errorf("%d streams of nobody", got)
	}
	s.Down()
	if got := s.Streams("x"); got != 0 {
		t.Errorf("%d streams after the end", got)
	}
}
