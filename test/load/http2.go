package load

//lint:file-ignore SA1019 net/http hides GOAWAY and the streams' errors, which are what is counted here

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http2"

	"aether.internal/test/load/internal/wire"
)

// h2 sends each request as a stream of one of a few kept connections, in
// turn. A connection is taken from slots only to pick or replace it.
type h2 struct {
	dialer
	transport *http2.Transport
	url       *url.URL
	slots     chan *http2.ClientConn // a nil is a place without a connection
}

func newH2(d dialer, k KindPlan) client { return makeH2(d, k, url.URL{Path: wire.HelloPath}) }

func newH2Stream(d dialer, k KindPlan) client {
	return makeH2(d, k, url.URL{Path: wire.StreamPath, RawQuery: streamQuery(k)})
}

func makeH2(d dialer, k KindPlan, target url.URL) *h2 {
	target.Scheme, target.Host = "http", d.address
	if d.tls != nil {
		target.Scheme = "https"
	}
	h := &h2{
		dialer: d, url: &target,
		transport: &http2.Transport{AllowHTTP: true, DisableCompression: true},
		slots:     make(chan *http2.ClientConn, k.Connections),
	}
	for range k.Connections {
		h.slots <- nil
	}
	return h
}

func (h *h2) close() {
	for range cap(h.slots) {
		if cc := <-h.slots; cc != nil {
			_ = cc.Close()
		}
	}
}

// attempts bounds how often one operation picks another connection.
const attempts = 3

func (h *h2) run(ctx context.Context, n *notes) error {
	request := (&http.Request{Method: http.MethodGet, URL: h.url, Host: h.url.Host, Header: http.Header{}}).WithContext(ctx)
	for try := 1; ; try++ {
		cc, fresh, err := h.pick(ctx, n)
		if err != nil {
			return err
		}
		resp, err := cc.RoundTrip(request)
		switch {
		case err == nil:
			return verify(resp, n)
		case try < attempts && !fresh && notSent(err):
			continue
		case try < attempts && notProcessed(err):
			n.retried++
			continue
		}
		return err
	}
}

// pick returns a connection with room reserved for one request, and whether
// it was made for it.
func (h *h2) pick(ctx context.Context, n *notes) (cc *http2.ClientConn, fresh bool, err error) {
	select {
	case cc = <-h.slots:
	case <-ctx.Done():
		return nil, false, fmt.Errorf("wait for a connection: %w", ctx.Err())
	}
	if cc != nil && !cc.ReserveNewRequest() {
		retire(cc, n)
		cc = nil
	}
	if fresh = cc == nil; fresh {
		cc, err = h.connect(ctx)
	}
	h.slots <- cc
	return cc, fresh, err
}

func (h *h2) connect(ctx context.Context) (*http2.ClientConn, error) {
	c, err := h.dial(ctx)
	if err != nil {
		return nil, err
	}
	cc, err := h.transport.NewClientConn(c)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("HTTP/2 preface: %w", err)
	}
	cc.ReserveNewRequest() // false only if it has died meanwhile: RoundTrip says so
	return cc, nil
}

// retire leaves a connection to its remaining streams; it closes itself after
// the last of them.
func retire(cc *http2.ClientConn, n *notes) {
	switch state := cc.State(); {
	case state.Closing: // GOAWAY
		n.told++
	case state.Closed:
		n.idleClosed++
	}
	cc.SetDoNotReuse()
	if s := cc.State(); s.StreamsActive+s.StreamsReserved+s.StreamsPending == 0 {
		_ = cc.Close()
	}
}

// These errors are unexported in x/net; their text is all there is.

// notSent: the connection ended between pick and RoundTrip; nothing went out.
func notSent(err error) bool {
	text := err.Error()
	return strings.HasSuffix(text, "http2: client conn not usable") ||
		strings.HasSuffix(text, "http2: client conn is closed") ||
		strings.HasSuffix(text, "http2: client conn could not be established")
}

// notProcessed: GOAWAY named a last stream before ours (RFC 9113, 6.8).
func notProcessed(err error) bool {
	return strings.HasSuffix(err.Error(), "http2: Transport received Server's graceful shutdown GOAWAY")
}
