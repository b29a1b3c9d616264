package xds

import (
	"cmp"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	procfilter "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"aether.internal/agent/internal/router/config"
	"aether.internal/agent/internal/router/extproc"
)

const procFilter = "envoy.filters.http.ext_proc"

const (
	// answerSlack is what an answer to a parked request may take beyond the
	// parking itself before Envoy gives up on it.
	answerSlack = 5 * time.Second
	// idleStream is Envoy's own limit for a stream on which nothing moves; a parked
	// request's must be longer than its parking.
	idleStream = 5 * time.Minute
	// delayedClose is how long Envoy waits until a client has taken the last answer
	// of a connection, and has closed it: after the default of a second a slow
	// client's answer is cut off. Longer ones hold drains up, because an idle
	// connection that Envoy closes waits for so long as well.
	delayedClose = 5 * time.Second
)

func (b *builder) listener(l config.Listener) *listener.Listener {
	name, filter := "envoy.filters.network.http_connection_manager", proto.Message(nil)
	if l.TCP != "" {
		name, filter = "envoy.filters.network.tcp_proxy", b.tcp(l)
	} else {
		filter = b.http(l)
	}
	chain := &listener.FilterChain{Filters: []*listener.Filter{{
		Name: name, ConfigType: &listener.Filter_TypedConfig{TypedConfig: b.pack(filter)},
	}}}
	if l.TLS != nil {
		chain.TransportSocket = b.tls(l)
	}
	return &listener.Listener{Name: l.Name, StatPrefix: l.Name, Address: socket(l.Address), FilterChains: []*listener.FilterChain{chain}}
}

func (b *builder) tcp(l config.Listener) *tcp.TcpProxy {
	t := &tcp.TcpProxy{StatPrefix: l.Name, ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: l.TCP}}
	if l.IdleTimeout > 0 {
		t.IdleTimeout = durationpb.New(l.IdleTimeout)
	}
	return t
}

func (b *builder) http(l config.Listener) *hcm.HttpConnectionManager {
	m := &hcm.HttpConnectionManager{
		StatPrefix: l.Name,
		// Routes come by themselves: a listener that changed would drain.
		RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{
			RouteConfigName: l.Name, ConfigSource: ads(),
		}},
		HttpFilters: []*hcm.HttpFilter{
			{Name: procFilter, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: b.pack(b.proc())}},
			{Name: "envoy.filters.http.router", ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: b.pack(&router.Router{})}},
		},
		StreamIdleTimeout:   durationpb.New(max(idleStream, b.longestPark()+2*answerSlack)),
		DelayedCloseTimeout: durationpb.New(delayedClose),
	}
	if l.IdleTimeout > 0 {
		m.CommonHttpProtocolOptions = &core.HttpProtocolOptions{IdleTimeout: durationpb.New(l.IdleTimeout)}
	}
	return m
}

func (b *builder) longestPark() time.Duration {
	longest := time.Duration(0)
	for _, p := range b.config.Pools {
		longest = max(longest, p.Park)
	}
	return longest
}

// proc asks the ext_proc server once, with the request's headers, and fails
// closed: without an answer nobody knows a worker. That trailers are wanted keeps
// the stream open until the answer is over, so its worker isn't given away early.
func (b *builder) proc() *procfilter.ExternalProcessor {
	return &procfilter.ExternalProcessor{
		GrpcService: &core.GrpcService{TargetSpecifier: &core.GrpcService_EnvoyGrpc_{
			EnvoyGrpc: &core.GrpcService_EnvoyGrpc{ClusterName: procCluster},
		}},
		FailureModeAllow: false,
		MessageTimeout:   durationpb.New(b.longestPark() + answerSlack),
		ProcessingMode: &procfilter.ProcessingMode{
			RequestHeaderMode:   procfilter.ProcessingMode_SEND,
			RequestTrailerMode:  procfilter.ProcessingMode_SKIP,
			ResponseHeaderMode:  procfilter.ProcessingMode_SKIP,
			ResponseTrailerMode: procfilter.ProcessingMode_SEND,
		},
	}
}

// routes groups by host: Envoy looks for the host first.
func (b *builder) routes(l config.Listener) *route.RouteConfiguration {
	c := &route.RouteConfiguration{Name: l.Name}
	hosts := map[string]*route.VirtualHost{}
	for _, r := range l.Routes {
		domain := cmp.Or(r.Host, "*")
		v := hosts[domain]
		if v == nil {
			v = &route.VirtualHost{Name: domain, Domains: []string{domain}}
			hosts[domain] = v
			c.VirtualHosts = append(c.VirtualHosts, v)
		}
		v.Routes = append(v.Routes, b.route(r))
	}
	return c
}

func (b *builder) route(r config.Route) *route.Route {
	overrides := &procfilter.ExtProcPerRoute{Override: &procfilter.ExtProcPerRoute_Disabled{Disabled: true}}
	if r.Pool != "" {
		overrides.Override = &procfilter.ExtProcPerRoute_Overrides{Overrides: &procfilter.ExtProcOverrides{
			GrpcInitialMetadata: []*core.HeaderValue{{Key: extproc.PoolKey, Value: r.Pool}},
		}}
	}
	return &route.Route{
		Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: cmp.Or(r.Prefix, "/")}},
		Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier: &route.RouteAction_Cluster{Cluster: cmp.Or(r.Pool, r.Cluster)},
			Timeout:          durationpb.New(r.Timeout),
		}},
		TypedPerFilterConfig: map[string]*anypb.Any{procFilter: b.pack(overrides)},
	}
}

func (b *builder) tls(l config.Listener) *core.TransportSocket {
	common := &tls.CommonTlsContext{TlsCertificates: []*tls.TlsCertificate{{
		CertificateChain: file(l.TLS.Certificate), PrivateKey: file(l.TLS.Key),
	}}}
	if l.TCP == "" {
		common.AlpnProtocols = []string{"h2", "http/1.1"}
	}
	return &core.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &core.TransportSocket_TypedConfig{
		TypedConfig: b.pack(&tls.DownstreamTlsContext{CommonTlsContext: common}),
	}}
}

func file(path string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: path}}
}

func ads() *core.ConfigSource {
	return &core.ConfigSource{
		ResourceApiVersion:    core.ApiVersion_V3,
		ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
	}
}
