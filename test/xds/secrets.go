package xds

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Names of the secrets that MutualTLS asks for.
const (
	ServerSecret = "server"  // a certificate and its key
	TrustSecret  = "clients" // the CA that clients' certificates are from
)

// MutualTLS makes a listener of HTTPListener's ask its clients for certificates,
// with both sides' secrets from the control plane, and tell the upstream the URI
// of the client's in x-forwarded-client-cert.
func MutualTLS(l *listener.Listener) *listener.Listener {
	chain := l.FilterChains[0]
	secure := &tls.DownstreamTlsContext{
		RequireClientCertificate: wrapperspb.Bool(true),
		CommonTlsContext: &tls.CommonTlsContext{
			AlpnProtocols:                  []string{"h2", "http/1.1"},
			TlsCertificateSdsSecretConfigs: []*tls.SdsSecretConfig{fromADS(ServerSecret)},
			ValidationContextType:          &tls.CommonTlsContext_ValidationContextSdsSecretConfig{ValidationContextSdsSecretConfig: fromADS(TrustSecret)},
		},
	}
	chain.TransportSocket = &core.TransportSocket{
		Name: "tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(secure)},
	}
	manager := &hcm.HttpConnectionManager{}
	if err := chain.Filters[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
		panic("xds: not a listener of HTTPListener's: " + err.Error())
	}
	manager.ForwardClientCertDetails = hcm.HttpConnectionManager_SANITIZE_SET
	manager.SetCurrentClientCertDetails = &hcm.HttpConnectionManager_SetCurrentClientCertDetails{Uri: true}
	chain.Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: pack(manager)}
	return l
}

func fromADS(name string) *tls.SdsSecretConfig {
	return &tls.SdsSecretConfig{Name: name, SdsConfig: &core.ConfigSource{
		ResourceApiVersion: core.ApiVersion_V3, ConfigSourceSpecifier: &core.ConfigSource_Ads{Ads: &core.AggregatedConfigSource{}},
	}}
}

// Certificate is a server's secret, given as PEM.
func Certificate(chain, key []byte) *tls.Secret {
	return &tls.Secret{Name: ServerSecret, Type: &tls.Secret_TlsCertificate{TlsCertificate: &tls.TlsCertificate{
		CertificateChain: inline(chain), PrivateKey: inline(key),
	}}}
}

// Trust is the secret with which clients are judged, given as PEM.
func Trust(ca []byte) *tls.Secret {
	return &tls.Secret{Name: TrustSecret, Type: &tls.Secret_ValidationContext{ValidationContext: &tls.CertificateValidationContext{
		TrustedCa: inline(ca),
	}}}
}

func inline(data []byte) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: data}}
}
