package actor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"

	"aether.internal/test/load"
)

// Load is a plan with what JSON can't say.
type Load struct {
	Name string
	load.Plan
	CA        string // PEM file of the CA to trust; empty: the plan has no TLS
	Cert, Key string // PEM files of the client's own certificate, or empty
}

// running is a load and what cuts it.
type running struct {
	*load.Runner
	abandon context.CancelFunc
}

func (s *stage) startLoad(_ context.Context, l Load) (struct{}, error) {
	if err := l.credentials(); err != nil {
		return struct{}{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, is := s.loads[l.Name]; is {
		return struct{}{}, fmt.Errorf("load %q is running", l.Name)
	}
	// Not the order's context: the load outlives it, until a report stops it.
	ctx, abandon := context.WithCancel(context.Background())
	r, err := load.Start(ctx, l.Plan)
	if err == nil {
		s.loads[l.Name] = running{r, abandon}
	} else {
		abandon()
	}
	return struct{}{}, err
}

func (l *Load) credentials() error {
	l.RootCAs = nil // what JSON made of it
	if l.CA != "" {
		pem, err := os.ReadFile(l.CA)
		if err != nil {
			return err
		}
		l.RootCAs = x509.NewCertPool()
		l.RootCAs.AppendCertsFromPEM(pem)
	}
	if l.Cert != "" {
		pair, err := tls.LoadX509KeyPair(l.Cert, l.Key)
		if err != nil {
			return err
		}
		l.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// Ask is for a report, and may end what it is of.
type Ask struct {
	Name string
	Stop bool // what is out is waited for
	Cut  bool // what is out is abandoned; with Stop
}

func (s *stage) report(_ context.Context, a Ask) (load.Report, error) {
	s.mu.Lock()
	r, is := s.loads[a.Name]
	if a.Stop {
		delete(s.loads, a.Name)
	}
	s.mu.Unlock()
	switch {
	case !is:
		return load.Report{}, fmt.Errorf("no load %q", a.Name)
	case a.Stop:
		if a.Cut {
			r.abandon()
		}
		defer r.abandon()
		return r.Stop(), nil
	}
	return r.Snapshot(), nil
}

// Addresses of the upstreams.
func (c *Client) Addresses(ctx context.Context) (Addresses, error) {
	return do[Addresses](ctx, c, "addresses", struct{}{})
}

// Fetch is a GET on a connection of its own.
func (c *Client) Fetch(ctx context.Context, url string) (Fetched, error) {
	return do[Fetched](ctx, c, "fetch", url)
}

// Load starts one, which runs until a report stops it.
func (c *Client) Load(ctx context.Context, l Load) error {
	_, err := do[struct{}](ctx, c, "load", l)
	return err
}

// Report of a load, and perhaps its end.
func (c *Client) Report(ctx context.Context, a Ask) (load.Report, error) {
	return do[load.Report](ctx, c, "report", a)
}
