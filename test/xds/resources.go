package xds

import (
	"fmt"
	"net"
	"strconv"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	upstreams "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Healthy is a control plane that has one HTTP listener for each port, named
// dynamic-0, dynamic-1, …, each with a cluster of its own of the same name,
// all in front of one upstream ("host:port").
func Healthy(upstream string, ports ...int) State {
	st := State{Resources: map[string][]proto.Message{}}
	for i, port := range ports {
		name := Name(i)
		st.Resources[Listeners] = append(st.Resources[Listeners], HTTPListener(name, port, name))
		st.Resources[Clusters] = append(st.Resources[Clusters], Cluster(name, upstream))
	}
	return st
}

// Name of the i-th listener and cluster of Healthy.
func Name(i int) string { return fmt.Sprintf("dynamic-%d", i) }

// Broken is st with every resource of a type changed to one that Envoy refuses.
func (st State) Broken(kind string) State {
	bad := make([]proto.Message, len(st.Resources[kind]))
	for i, m := range st.Resources[kind] {
		bad[i] = proto.Clone(m)
		switch r := bad[i].(type) {
		case *listener.Listener:
			r.FilterChains[0].Filters[0].Name = "no.such.filter"
			r.FilterChains[0].Filters[0].ConfigType = nil
		case *cluster.Cluster:
			r.ConnectTimeout = durationpb.New(-time.Second)
		}
	}
	return st.with(kind, bad)
}

// Fewer is st with only the first n resources of a type.
func (st State) Fewer(kind string, n int) State { return st.with(kind, st.Resources[kind][:n]) }

func (st State) with(kind string, resources []proto.Message) State {
	copied := map[string][]proto.Message{kind: resources}
	for k, r := range st.Resources {
		if k != kind {
			copied[k] = r
		}
	}
	st.Resources = copied
	return st
}

// HTTPListener routes everything at a loopback port to a cluster.
func HTTPListener(name string, port int, to string) *listener.Listener {
	manager := &hcm.HttpConnectionManager{
		StatPrefix:        name,
		StreamIdleTimeout: durationpb.New(0),
		HttpFilters:       []*hcm.HttpFilter{{Name: "router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&router.Router{})}}},
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &route.RouteConfiguration{
			Name: name,
			VirtualHosts: []*route.VirtualHost{{Name: "all", Domains: []string{"*"}, Routes: []*route.Route{{
				Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}},
				Action: &route.Route_Route{Route: &route.RouteAction{
					ClusterSpecifier: &route.RouteAction_Cluster{Cluster: to}, Timeout: durationpb.New(0),
				}},
			}}}},
		}},
	}
	return &listener.Listener{
		Name: name, Address: address("127.0.0.1", port),
		FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{{
			Name: "http", ConfigType: &listener.Filter_TypedConfig{TypedConfig: pack(manager)},
		}}}},
	}
}

// Cluster speaks to upstream ("host:port") what the client speaks.
func Cluster(name, upstream string) *cluster.Cluster {
	host, port, _ := net.SplitHostPort(upstream)
	n, err := strconv.Atoi(port)
	if err != nil {
		panic("xds: upstream " + upstream + ": want host:port")
	}
	options := &upstreams.HttpProtocolOptions{
		UpstreamProtocolOptions: &upstreams.HttpProtocolOptions_UseDownstreamProtocolConfig{
			UseDownstreamProtocolConfig: &upstreams.HttpProtocolOptions_UseDownstreamHttpConfig{
				HttpProtocolOptions: &core.Http1ProtocolOptions{}, Http2ProtocolOptions: &core.Http2ProtocolOptions{},
			},
		},
	}
	return &cluster.Cluster{
		Name: name, ConnectTimeout: durationpb.New(5 * time.Second),
		ClusterDiscoveryType:          &cluster.Cluster_Type{Type: cluster.Cluster_STATIC},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(options)},
		LoadAssignment: &endpoint.ClusterLoadAssignment{
			ClusterName: name,
			Endpoints: []*endpoint.LocalityLbEndpoints{{LbEndpoints: []*endpoint.LbEndpoint{{
				HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: address(host, n)}},
			}}}},
		},
	}
}

func address(host string, port int) *core.Address {
	return &core.Address{Address: &core.Address_SocketAddress{SocketAddress: &core.SocketAddress{
		Address: host, PortSpecifier: &core.SocketAddress_PortValue{PortValue: uint32(port)},
	}}}
}

// pack can't fail for a message of ours.
func pack(m proto.Message) *anypb.Any {
	packed, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return packed
}
