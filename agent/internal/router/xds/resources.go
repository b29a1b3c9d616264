// Package xds configures Envoy: the router's configuration becomes listeners,
// routes and clusters, served over ADS by go-control-plane.
package xds

import (
	"fmt"
	"net/netip"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/router/config"
	"aether.internal/agent/internal/router/extproc"
)

// procCluster is where Envoy finds the ext_proc server.
const procCluster = "atenet-ext-proc"

const connectTimeout = 5 * time.Second

// Snapshot is all that Envoy is told; its version is the configuration's hash, so
// that a router that was restarted tells nothing new.
func Snapshot(c config.Config, proc envoy.Address) (*cache.Snapshot, error) {
	b := builder{config: c}
	var listeners, routes, clusters []types.Resource
	clusters = append(clusters, b.procCluster(proc))
	for _, p := range c.Pools {
		clusters = append(clusters, b.pool(p))
	}
	for _, k := range c.Clusters {
		clusters = append(clusters, b.cluster(k))
	}
	for _, l := range c.Listeners {
		listeners = append(listeners, b.listener(l))
		if l.TCP == "" {
			routes = append(routes, b.routes(l))
		}
	}
	if b.err != nil {
		return nil, fmt.Errorf("xds: %w", b.err)
	}
	s, err := cache.NewSnapshot(c.Hash, map[resource.Type][]types.Resource{
		resource.ListenerType: listeners, resource.RouteType: routes, resource.ClusterType: clusters,
	})
	if err == nil {
		err = s.Consistent()
	}
	if err != nil {
		return nil, fmt.Errorf("xds: %w", err)
	}
	return s, nil
}

// builder keeps the first error.
type builder struct {
	config config.Config
	err    error
}

func (b *builder) pack(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil && b.err == nil {
		b.err = err
	}
	return packed
}

func (b *builder) procCluster(a envoy.Address) *cluster.Cluster {
	c := b.static(procCluster, []*core.Address{address(a)})
	c.TypedExtensionProtocolOptions = b.protocol(config.HTTP2)
	return c
}

// pool goes where the ext_proc server has said, in a header: with a cluster for
// each worker a request could meet an Envoy that hasn't heard of it yet.
func (b *builder) pool(p config.Pool) *cluster.Cluster {
	return &cluster.Cluster{
		Name:                 p.Name,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_ORIGINAL_DST},
		LbPolicy:             cluster.Cluster_CLUSTER_PROVIDED,
		LbConfig: &cluster.Cluster_OriginalDstLbConfig_{OriginalDstLbConfig: &cluster.Cluster_OriginalDstLbConfig{
			UseHttpHeader: true, HttpHeaderName: extproc.WorkerHeader,
		}},
		ConnectTimeout:                durationpb.New(connectTimeout),
		CircuitBreakers:               openWide(),
		TypedExtensionProtocolOptions: b.protocol(p.Protocol),
	}
}

func (b *builder) cluster(k config.Cluster) *cluster.Cluster {
	var endpoints []*core.Address
	for _, e := range k.Endpoints {
		endpoints = append(endpoints, socket(e))
	}
	c := b.static(k.Name, endpoints)
	c.TypedExtensionProtocolOptions = b.protocol(k.Protocol)
	return c
}

func (b *builder) static(name string, addresses []*core.Address) *cluster.Cluster {
	var all []*endpoint.LbEndpoint
	for _, a := range addresses {
		all = append(all, &endpoint.LbEndpoint{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: a}}})
	}
	return &cluster.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &cluster.Cluster_Type{Type: cluster.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(connectTimeout),
		CircuitBreakers:      openWide(),
		LoadAssignment:       &endpoint.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpoint.LocalityLbEndpoints{{LbEndpoints: all}}},
	}
}

// openWide: what is taken in is bounded by the pools. With Envoy's default of
// 1,024 the 1,025th parked request would be a 500.
func openWide() *cluster.CircuitBreakers {
	most := wrapperspb.UInt32(1 << 30)
	return &cluster.CircuitBreakers{Thresholds: []*cluster.CircuitBreakers_Thresholds{
		{MaxConnections: most, MaxPendingRequests: most, MaxRequests: most, MaxRetries: most},
	}}
}

func (b *builder) protocol(name string) map[string]*anypb.Any {
	options := &upstreams.HttpProtocolOptions{}
	h1, h2 := &core.Http1ProtocolOptions{}, &core.Http2ProtocolOptions{}
	type explicit = upstreams.HttpProtocolOptions_ExplicitHttpConfig
	switch name {
	case config.HTTP1:
		options.UpstreamProtocolOptions = &upstreams.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &explicit{
			ProtocolConfig: &upstreams.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: h1},
		}}
	case config.HTTP2:
		options.UpstreamProtocolOptions = &upstreams.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &explicit{
			ProtocolConfig: &upstreams.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: h2},
		}}
	default:
		options.UpstreamProtocolOptions = &upstreams.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &upstreams.HttpProtocolOptions_UseDownstreamHttpConfig{HttpProtocolOptions: h1, Http2ProtocolOptions: h2},
		}
	}
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": b.pack(options)}
}

// socket of an address that the configuration's check has parsed.
func socket(hostPort string) *core.Address {
	at := netip.MustParseAddrPort(hostPort)
	return address(envoy.Address{Host: at.Addr().String(), Port: int(at.Port())})
}

func address(a envoy.Address) *core.Address {
	if a.IsUnix() {
		return &core.Address{Address: &core.Address_Pipe{Pipe: &core.Pipe{Path: a.Path}}}
	}
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: a.Host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(a.Port)},
	}}}
}
