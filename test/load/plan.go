// Package load puts mixed traffic on an Envoy and counts, kind by kind, what
// became of every operation. It is open loop: operations start by the clock,
// whether or not earlier ones have been answered, and their latency counts
// from the moment they were due.
package load

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Kinds of operation. Each goes with and without TLS.
const (
	New       = "new"        // a connection of its own for one GET
	KeepAlive = "keep-alive" // a GET on a kept connection, until told to close
	Stream    = "stream"     // a GET whose body takes StreamDuration
	Upload    = "upload"     // a POST whose body takes StreamDuration
	H2        = "h2"         // a GET as one HTTP/2 stream of a kept connection
	H2Stream  = "h2-stream"  // as Stream, on a kept HTTP/2 connection
	GRPC      = "grpc"       // a bidirectional call of StreamDuration, ping-pong
	TCP       = "tcp"        // random bytes out, half-close, the same bytes back
	TCPHold   = "tcp-hold"   // a TCP connection in ping-pong for StreamDuration
)

// Target is where the listeners of the proxy are, each "host:port". An empty
// one leaves the kinds that need it out of DefaultPlan.
type Target struct {
	HTTP  string // HTTP/1.1 and HTTP/2 with prior knowledge
	HTTPS string // the same over TLS, by ALPN
	TCP   string // proxied TCP
	TLS   string // TLS, then proxied TCP

	RootCAs            *x509.CertPool // nil: the system's
	InsecureSkipVerify bool           // take any certificate

	Certificates []tls.Certificate `json:"-"` // shown to listeners that ask for one
}

// KindPlan is the load of one kind.
type KindPlan struct {
	Kind string
	TLS  bool
	// Rate is operations per second, open loop. Concurrency is the other
	// way: that many operations at all times. Exactly one of them is set.
	Rate        float64
	Concurrency int
	// StreamDuration of a long kind; 0 takes the plan's.
	StreamDuration time.Duration
	// Connections kept open by KeepAlive, H2, H2Stream and GRPC; 0 means 4,
	// for the long kinds 1. Envoy tells a connection to close only when it
	// answers on it (fact 14), so an epoch's limit must exceed its
	// drain time + Connections/Rate + StreamDuration, or streams are cut.
	Connections int
	// MaxOutstanding operations of an open loop; what would be more is not
	// started and counted as Overrun. 0: what Rate can reach before Timeout.
	MaxOutstanding int
}

// Plan is a whole run.
type Plan struct {
	Target
	Kinds []KindPlan
	// Timeout of an operation, not counting its StreamDuration. 0 means 5 s.
	Timeout time.Duration
	// StreamDuration of the long kinds. 0 means 2 s.
	StreamDuration time.Duration
	// Strict makes a permitted retry (KindReport.Retried) a failure.
	Strict bool
	// MaxErrors kept with their message, for each kind. 0 means 10.
	MaxErrors int
	// Bucket is the width of one point of the timeline. 0 means 100 ms.
	Bucket time.Duration
}

// DefaultPlan is every kind that t has a listener for, about 330 operations
// a second in all: modest enough for two cores shared with two Envoys.
func DefaultPlan(t Target) Plan {
	p := Plan{Target: t}
	p.web(t.HTTP, false, 1)
	p.web(t.HTTPS, true, 0.75) // handshakes cost the most
	p.raw(t.TCP, false, 20)
	p.raw(t.TLS, true, 12)
	return p
}

func (p *Plan) web(address string, tls bool, scale float64) {
	if address == "" {
		return
	}
	p.Kinds = append(p.Kinds,
		KindPlan{Kind: New, TLS: tls, Rate: 40 * scale},
		KindPlan{Kind: KeepAlive, TLS: tls, Rate: 60 * scale},
		KindPlan{Kind: H2, TLS: tls, Rate: 60 * scale},
		KindPlan{Kind: Stream, TLS: tls, Rate: 2},
		KindPlan{Kind: Upload, TLS: tls, Rate: 2},
		KindPlan{Kind: H2Stream, TLS: tls, Rate: 2},
		KindPlan{Kind: GRPC, TLS: tls, Rate: 2},
	)
}

func (p *Plan) raw(address string, tls bool, rate float64) {
	if address == "" {
		return
	}
	p.Kinds = append(p.Kinds,
		KindPlan{Kind: TCP, TLS: tls, Rate: rate},
		KindPlan{Kind: TCPHold, TLS: tls, Rate: 2},
	)
}

// address is the listener that a kind talks to.
func (t Target) address(kind string, tls bool) string {
	raw := kind == TCP || kind == TCPHold
	switch {
	case raw && tls:
		return t.TLS
	case raw:
		return t.TCP
	case tls:
		return t.HTTPS
	default:
		return t.HTTP
	}
}

func long(kind string) bool {
	switch kind {
	case Stream, Upload, H2Stream, GRPC, TCPHold:
		return true
	}
	return false
}

// withDefaults fills in what is zero, and refuses what can't be run.
func (p Plan) withDefaults() (Plan, error) {
	fill(&p.Timeout, 5*time.Second)
	fill(&p.StreamDuration, 2*time.Second)
	fill(&p.Bucket, 100*time.Millisecond)
	fill(&p.MaxErrors, 10)
	if len(p.Kinds) == 0 {
		return p, errors.New("load: the plan has no kinds: is any listener of the target set?")
	}
	kinds := make([]KindPlan, len(p.Kinds))
	for i, k := range p.Kinds {
		var err error
		if kinds[i], err = k.withDefaults(p); err != nil {
			return p, fmt.Errorf("load: kind %d (%q, tls %t): %w", i, k.Kind, k.TLS, err)
		}
	}
	p.Kinds = kinds
	return p, nil
}

func (k KindPlan) withDefaults(p Plan) (KindPlan, error) {
	if _, known := makers[k.Kind]; !known {
		return k, errors.New("no such kind")
	}
	if err := checkAddress(p.address(k.Kind, k.TLS)); err != nil {
		return k, err
	}
	if (k.Rate > 0) == (k.Concurrency > 0) || k.Rate < 0 || k.Concurrency < 0 {
		return k, fmt.Errorf("set a rate or a concurrency above 0, and only one of them (rate %g, concurrency %d)", k.Rate, k.Concurrency)
	}
	if long(k.Kind) {
		fill(&k.Connections, 1)
		fill(&k.StreamDuration, p.StreamDuration)
	} else {
		fill(&k.Connections, 4)
		k.StreamDuration = 0
	}
	fill(&k.MaxOutstanding, 16+int(k.Rate*(p.Timeout+k.StreamDuration).Seconds()))
	return k, nil
}

func checkAddress(address string) error {
	if address == "" {
		return errors.New("the target has no listener for it")
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err // names the address
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("address %q: want a port from 1 to 65535", address)
	}
	return nil
}

func fill[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}
