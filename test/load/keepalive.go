package load

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"golang.org/x/sys/unix"

	"aether.internal/test/load/internal/wire"
)

// keepAlive sends each request on the kept connection that has rested
// longest: all of them stay in use, and each meets every handoff.
type keepAlive struct {
	dialer
	request []byte
	slots   chan *h1conn // a nil is a place without a connection
}

func newKeepAlive(d dialer, k KindPlan) client {
	ka := &keepAlive{d, get(wire.HelloPath, d.address, ""), make(chan *h1conn, k.Connections)}
	for range k.Connections {
		ka.slots <- nil
	}
	return ka
}

func (ka *keepAlive) close() {
	for range cap(ka.slots) {
		if c := <-ka.slots; c != nil {
			_ = c.Close()
		}
	}
}

func (ka *keepAlive) run(ctx context.Context, n *notes) error {
	select {
	case kept := <-ka.slots:
		next, err := ka.ask(ctx, kept, n)
		ka.slots <- next
		return err
	default: // all are busy: an open loop doesn't wait
		extra, err := ka.ask(ctx, nil, n)
		if extra != nil {
			_ = extra.Close()
		}
		return err
	}
}

// ask uses kept, or a new connection, and returns the one to keep.
func (ka *keepAlive) ask(ctx context.Context, kept *h1conn, n *notes) (*h1conn, error) {
	if kept != nil && endedIdle(kept) {
		n.idleClosed++
		_ = kept.Close()
		kept = nil
	}
	next, err := ka.once(ctx, kept, n)
	var unanswered errUnanswered
	if kept != nil && errors.As(err, &unanswered) && gone(err) {
		// The server closed it while the request was on its way. RFC 9110,
		// 9.2.2: once, and on a new connection, a GET may be sent again.
		n.retried++
		return ka.once(ctx, nil, n)
	}
	return next, err
}

func (ka *keepAlive) once(ctx context.Context, c *h1conn, n *notes) (*h1conn, error) {
	if c == nil {
		var err error
		if c, err = ka.dialH1(ctx); err != nil {
			return nil, err
		}
	}
	release := bound(ctx, c)
	stays, err := c.ask(ka.request, n)
	// If it can't be released, ctx's end is about to break the connection.
	if err == nil && stays && release() {
		return c, nil
	}
	release()
	_ = c.Close()
	if err == nil && !stays {
		n.told++
	}
	return nil, err
}

// endedIdle looks, without waiting, whether a resting connection has
// something to read: its end, or (with TLS) the alert that announces it.
// Nothing else may come between two answers.
func endedIdle(c *h1conn) bool {
	if c.in.Buffered() > 0 {
		return true
	}
	var raw net.Conn = c.conn
	if secure, ok := raw.(*tls.Conn); ok {
		raw = secure.NetConn()
	}
	sys, err := raw.(*net.TCPConn).SyscallConn()
	if err != nil {
		return true
	}
	readable := true
	var b [1]byte
	// Control, not Read: that would fail at the last operation's deadline.
	err = sys.Control(func(fd uintptr) {
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		readable = err != unix.EAGAIN
	})
	return err != nil || readable
}
