// Package bootstrap writes the Envoy configuration that puts the load
// generator's upstream behind all the listeners the load needs.
package bootstrap

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"net"
	"strconv"
	"text/template"
	"time"

	"aether.internal/test/load"
)

// Options of one bootstrap. A listener whose port is 0 is left out: ports are
// fixed because every epoch must ask for the same ones (see FreePorts).
type Options struct {
	Admin string // "host:port" or "unix:PATH"; empty: no admin
	Host  string // of the listeners; empty: 127.0.0.1

	HTTP  int // listener "http": HTTP/1.1 and HTTP/2 with prior knowledge
	HTTPS int // listener "https": the same over TLS, by ALPN
	TCP   int // listener "tcp": TCP proxy
	TLS   int // listener "tls": TLS, then TCP proxy

	UpstreamHTTP string // host:port; HTTP/1.1, h2c, gRPC
	UpstreamTCP  string // host:port; TCP

	EpochTag    string      // the x-epoch response header; empty: v1
	Certificate Certificate // for HTTPS and TLS
	NodeID      string      // empty: load

	// XDS is the Unix socket of a gRPC control plane that delivers further
	// listeners and clusters (ADS, state of the world); empty: none.
	XDS string
	// InitialFetchTimeout of XDS; negative leaves Envoy's default (15 s).
	InitialFetchTimeout time.Duration
}

//go:embed bootstrap.yaml.tmpl
var source string

var page = template.Must(template.New("bootstrap").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(source))

// YAML is the bootstrap.
func (o Options) YAML() ([]byte, error) {
	v, err := o.view()
	if err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("bootstrap: %w", err)
	}
	return out.Bytes(), nil
}

// Target is what the load generator should talk to.
func (o Options) Target() load.Target {
	o = o.withDefaults()
	at := func(port int) string {
		if port == 0 {
			return ""
		}
		return net.JoinHostPort(o.Host, strconv.Itoa(port))
	}
	return load.Target{
		HTTP: at(o.HTTP), HTTPS: at(o.HTTPS), TCP: at(o.TCP), TLS: at(o.TLS),
		RootCAs: o.Certificate.Pool,
	}
}

func (o Options) withDefaults() Options {
	o.Host = cmp.Or(o.Host, "127.0.0.1")
	o.EpochTag = cmp.Or(o.EpochTag, "v1")
	o.NodeID = cmp.Or(o.NodeID, "load")
	return o
}
