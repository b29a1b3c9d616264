package xds

import (
	"context"
	"strconv"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// ads is the service; each stream has a goroutine of its own.
type ads struct {
	discovery.UnimplementedAggregatedDiscoveryServiceServer
	*Server
}

// stream is one Envoy's subscription.
type stream struct {
	*Server
	grpc    discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer
	state   State
	version int
	node    string         // its id, from the first request
	sent    map[string]int // version of the last answer of a type; 0: asked for, not answered yet
}

// StreamAggregatedResources answers each type's first request, pushes what has
// changed, and takes acknowledgements for what they are. A refused update is
// not sent again: some control planes do so at once, thousands of times.
func (a *ads) StreamAggregatedResources(g discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	st := &stream{Server: a.Server, grpc: g, sent: map[string]int{}}
	defer func() { st.count(st.node, -1) }()
	st.count(st.node, 1)
	requests := make(chan *discovery.DiscoveryRequest)
	go receive(g, requests) // ends with the stream
	for {
		state, version, changed := st.now()
		if st.version == 0 || !state.NewStreamsOnly {
			st.state, st.version = state, version
		}
		if err := st.push(); err != nil {
			return err
		}
		select {
		case req := <-requests:
			if err := st.request(req); err != nil {
				return err
			}
		case <-changed:
		case <-g.Context().Done():
			return nil
		}
	}
}

func receive(g discovery.AggregatedDiscoveryService_StreamAggregatedResourcesServer, to chan<- *discovery.DiscoveryRequest) {
	for {
		req, err := g.Recv()
		if err != nil {
			return
		}
		select {
		case to <- req:
		case <-g.Context().Done():
			return
		}
	}
}

func (st *stream) request(req *discovery.DiscoveryRequest) error {
	if id := req.GetNode().GetId(); id != "" && id != st.node { // later requests need not say
		st.count(st.node, -1)
		st.node = id
		st.count(st.node, 1)
	}
	kind := req.GetTypeUrl()
	if req.GetErrorDetail() != nil {
		st.reject(kind)
		return nil
	}
	if _, known := st.sent[kind]; known {
		return nil // an acknowledgement
	}
	st.sent[kind] = 0
	return pause(st.grpc.Context(), st.state.Delay)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// push answers every type that was asked for and has something newer.
func (st *stream) push() error {
	// Clusters first: a listener is refused while its cluster isn't there.
	for _, kind := range []string{Clusters, Listeners, Secrets} {
		sent, asked := st.sent[kind]
		if !asked || sent == st.version || st.state.Silent[kind] {
			continue
		}
		resp := &discovery.DiscoveryResponse{TypeUrl: kind, VersionInfo: strconv.Itoa(st.version), Nonce: strconv.Itoa(st.version)}
		for _, m := range st.state.Resources[kind] {
			resp.Resources = append(resp.Resources, pack(m))
		}
		if err := st.grpc.Send(resp); err != nil {
			return err
		}
		st.sent[kind] = st.version
	}
	return nil
}
