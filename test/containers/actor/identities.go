package actor

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// identities is before an upstream and counts requests by the client that Envoy
// names in x-forwarded-client-cert.
type identities struct {
	next     *httputil.ReverseProxy
	listener net.Listener
	server   *http.Server
	ended    chan struct{}

	mu     sync.Mutex // between requests
	counts map[string]int
}

func serveIdentities(upstream string) (*identities, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	to := &url.URL{Scheme: "http", Host: upstream}
	next := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1}
	i := &identities{next: next, listener: l, ended: make(chan struct{}), counts: map[string]int{}}
	i.server = &http.Server{Handler: i, ReadHeaderTimeout: time.Minute, Protocols: new(http.Protocols)}
	i.server.Protocols.SetHTTP1(true)
	i.server.Protocols.SetUnencryptedHTTP2(true)
	go func() { // joined by close
		defer close(i.ended)
		_ = i.server.Serve(l) // until close
	}()
	return i, nil
}

func (i *identities) address() string { return i.listener.Addr().String() }

func (i *identities) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	i.counts[r.Header.Get("x-forwarded-client-cert")]++
	i.mu.Unlock()
	i.next.ServeHTTP(w, r)
}

func (i *identities) seen() map[string]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.counts)
}

func (i *identities) close() {
	_ = i.server.Close()
	<-i.ended
}

// Identities are the values of x-forwarded-client-cert that the upstream has
// seen, "" for none, with the number of requests.
func (c *Client) Identities(ctx context.Context) (map[string]int, error) {
	return do[map[string]int](ctx, c, "identities", struct{}{})
}
