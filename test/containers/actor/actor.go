// Package actor acts inside a network namespace for a test outside of it: it is
// the upstream behind the Envoys there and the clients before them. It takes
// orders as JSON over a Unix socket, which needs no network.
package actor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"aether.internal/test/load/upstream"
)

// Started is what the program prints once it takes orders.
const Started = "the actor is on stage"

// Addresses are the upstreams', each "host:port" on loopback.
type Addresses struct {
	HTTP, TCP string // test/load/upstream
	Identity  string // the first, behind one that counts who Envoy says the client is
	UDP       string // echo
}

// stage is all that is going on.
type stage struct {
	addresses  Addresses
	identities *identities

	mu    sync.Mutex // between orders
	loads map[string]running
	flows *flows
	quic  *quicClients
}

// Serve takes orders at a Unix socket until ctx ends; ready is called once it does.
func Serve(ctx context.Context, socket string, ready func()) error {
	s := &stage{loads: map[string]running{}}
	behind, err := upstream.Start()
	if err != nil {
		return err
	}
	defer behind.Close()
	if s.identities, err = serveIdentities(behind.HTTP); err != nil {
		return err
	}
	defer s.identities.close()
	echo, err := serveDatagrams()
	if err != nil {
		return err
	}
	defer echo.close()
	s.addresses = Addresses{HTTP: behind.HTTP, TCP: behind.TCP, Identity: s.identities.address(), UDP: echo.address()}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	orders := &http.Server{Handler: s.orders(), ReadHeaderTimeout: time.Minute}
	defer context.AfterFunc(ctx, func() { _ = orders.Close() })()
	defer s.end()
	ready()
	if err := orders.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// end stops what no report has stopped.
func (s *stage) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.loads {
		r.abandon()
		r.Stop()
	}
	if s.flows != nil {
		s.flows.end()
	}
	if s.quic != nil {
		s.quic.end()
	}
}

func (s *stage) orders() http.Handler {
	mux := http.NewServeMux()
	order(mux, "addresses", func(context.Context, struct{}) (Addresses, error) { return s.addresses, nil })
	order(mux, "identities", func(context.Context, struct{}) (map[string]int, error) { return s.identities.seen(), nil })
	order(mux, "fetch", fetch)
	order(mux, "load", s.startLoad)
	order(mux, "report", s.report)
	order(mux, "flows", s.startFlows)
	order(mux, "flows-report", s.reportFlows)
	order(mux, "quic", s.startQUIC)
	order(mux, "quic-report", s.reportQUIC)
	return mux
}

// order serves POST /name: JSON in, JSON out, an error as text.
func order[In, Out any](mux *http.ServeMux, name string, do func(context.Context, In) (Out, error)) {
	mux.HandleFunc("POST /"+name, func(w http.ResponseWriter, r *http.Request) {
		var in In
		err := json.NewDecoder(r.Body).Decode(&in)
		var out Out
		if err == nil {
			out, err = do(r.Context(), in)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(out) // whoever has left wants no answer
	})
}

// Fetched is an answer to one GET.
type Fetched struct {
	Status int
	Epoch  string // x-epoch
	Body   string
}

// fetch is a GET on a connection of its own.
func fetch(ctx context.Context, url string) (Fetched, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return Fetched{}, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return Fetched{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return Fetched{Status: resp.StatusCode, Epoch: resp.Header.Get("x-epoch"), Body: string(body)}, err
}

// Client gives orders.
type Client struct{ http http.Client }

// NewClient gives them at a Unix socket.
func NewClient(socket string) *Client {
	return &Client{http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}}
}

// Close ends its connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func do[Out any](ctx context.Context, c *Client, name string, in any) (out Out, err error) {
	read, write := io.Pipe()
	go func() { write.CloseWithError(json.NewEncoder(write).Encode(in)) }() // ends with the request
	defer read.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://actor/"+name, read)
	if err != nil {
		return out, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(resp.Body)
		return out, fmt.Errorf("%s: %s", name, why)
	}
	return out, json.NewDecoder(resp.Body).Decode(&out)
}
