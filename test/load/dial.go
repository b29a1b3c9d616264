package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// makers builds the client of each kind.
var makers = map[string]func(dialer, KindPlan) client{
	New:       newSingle,
	KeepAlive: newKeepAlive,
	Stream:    newStream,
	Upload:    newUpload,
	H2:        newH2,
	H2Stream:  newH2Stream,
	GRPC:      newGRPC,
	TCP:       newTCP,
	TCPHold:   newTCPHold,
}

// dialer makes the connections of one kind.
type dialer struct {
	address string
	tls     *tls.Config // nil: without
	timeout time.Duration
	net     net.Dialer
}

func newDialer(p Plan, k KindPlan) dialer {
	// No TCP keep-alive probes: they would only cost system calls.
	d := dialer{address: p.address(k.Kind, k.TLS), timeout: p.Timeout, net: net.Dialer{KeepAlive: -1}}
	if !k.TLS {
		return d
	}
	host, _, _ := net.SplitHostPort(d.address) // a bad address fails to dial, with a better message
	d.tls = &tls.Config{
		ServerName: host, RootCAs: p.RootCAs, MinVersion: tls.VersionTLS12, Certificates: p.Certificates,
		InsecureSkipVerify: p.InsecureSkipVerify, //nolint:gosec // the caller's choice, on loopback
	}
	switch k.Kind {
	case New, KeepAlive, Stream, Upload:
		d.tls.NextProtos = []string{"http/1.1"}
	case H2, H2Stream, GRPC:
		d.tls.NextProtos = []string{"h2"}
	}
	return d
}

// conn is a connection that can say it has nothing more to send.
type conn interface {
	net.Conn
	CloseWrite() error
}

// dial connects, with TLS if that is asked for, before ctx's deadline.
func (d *dialer) dial(ctx context.Context) (conn, error) {
	raw, err := d.net.DialContext(ctx, "tcp", d.address)
	if err != nil {
		return nil, err // says "dial tcp ADDRESS"
	}
	if d.tls == nil {
		return raw.(*net.TCPConn), nil
	}
	secure := tls.Client(raw, d.tls)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", d.address, err)
	}
	return secure, nil
}

// longPast makes every read and write of a connection fail at once.
var longPast = time.Unix(1, 0)

// bound ends what happens on c when ctx does. The caller calls release before
// it uses c for anything else.
func bound(ctx context.Context, c net.Conn) (release func() bool) {
	deadline, _ := ctx.Deadline() // none: zero, which clears the connection's
	_ = c.SetDeadline(deadline)   // on a closed one the next read says so
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(longPast) })
}

// pace calls step at once and then every interval, n times in all, by the
// clock: a slow step doesn't delay the later ones.
func pace(ctx context.Context, n int, interval time.Duration, step func(i int) error) error {
	start := time.Now()
	for i := range n {
		if !sleepUntil(ctx, start.Add(time.Duration(i)*interval)) {
			return ctx.Err()
		}
		if err := step(i); err != nil {
			return err
		}
	}
	return nil
}
