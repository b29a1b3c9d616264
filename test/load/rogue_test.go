package load_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/internal/wire"
	"aether.internal/test/load/upstream"
)

// script is what a server does with its n-th connection, from 0. The
// connection is closed after it.
type script func(c *wireConn, n int)

// wireConn is a server's end.
type wireConn struct {
	net.Conn
	in  *bufio.Reader
	tcp *net.TCPConn
	end <-chan struct{} // the test is over
}

// rogue serves a script on loopback until the test ends.
func rogue(t *testing.T, config *tls.Config, do script) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	end := make(chan struct{})
	var goroutines sync.WaitGroup
	t.Cleanup(func() { close(end); _ = l.Close(); goroutines.Wait() })
	// The accept loop and its connections, joined by the cleanup.
	goroutines.Go(func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w := &wireConn{Conn: c, tcp: c.(*net.TCPConn), end: end}
			if config != nil {
				w.Conn = tls.Server(c, config)
			}
			w.in = bufio.NewReader(w.Conn)
			goroutines.Go(func() { defer c.Close(); do(w, n) })
			goroutines.Go(func() { <-end; _ = c.Close() }) // whatever it waits for
		}
	})
	return l.Addr().String()
}

// request reads one HTTP/1 request, body and all.
func (c *wireConn) request() bool {
	r, err := http.ReadRequest(c.in)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil
}

// hello is a right answer to HelloPath; header goes into it.
func hello(header string) string {
	body := wire.Piece(0, wire.PieceSize)
	return announced(header, len(body)) + string(body)
}

// announced is the header of an answer like hello's, with this Content-Length.
func announced(header string, length int) string {
	sum := wire.StreamSum(1)
	h := http.Header{}
	sum.Announce(h)
	var text strings.Builder
	_ = h.Write(&text)
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s%s\r\n", length, text.String(), header)
}

func (c *wireConn) say(s string) { _, _ = io.WriteString(c.Conn, s) }

// reset closes with an RST.
func (c *wireConn) reset() { _ = c.tcp.SetLinger(0); _ = c.tcp.Close() }

// stall says nothing more until the test is over.
func (c *wireConn) stall() { <-c.end }

// targetOf is a target with a rogue in the place the kind looks at.
func targetOf(kind string, tls bool, address string) load.Target {
	switch raw := kind == load.TCP || kind == load.TCPHold; {
	case raw && tls:
		return load.Target{TLS: address}
	case raw:
		return load.Target{TCP: address}
	case tls:
		return load.Target{HTTPS: address}
	default:
		return load.Target{HTTP: address}
	}
}

// identity is a certificate for servers, and what trusts it.
func identity(t *testing.T) (*tls.Config, bootstrap.Certificate) {
	t.Helper()
	c, err := bootstrap.NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.CertPath, c.KeyPath)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}, c
}

// behaved is a target with all four listeners and no Envoy: the upstream
// itself, and TLS in front of it.
func behaved(t *testing.T, epoch string) load.Target {
	t.Helper()
	s, err := upstream.StartAs(epoch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	config, certificate := identity(t)
	return load.Target{
		HTTP: s.HTTP, TCP: s.TCP, RootCAs: certificate.Pool,
		HTTPS: rogue(t, config, forward(s.HTTP)),
		TLS:   rogue(t, config, forward(s.TCP)),
	}
}

// forward is a well-behaved TCP proxy.
func forward(to string) script {
	return func(c *wireConn, _ int) {
		up, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer up.Close()
		var there sync.WaitGroup
		there.Go(func() { _, _ = io.Copy(up, c.in); _ = up.(*net.TCPConn).CloseWrite() })
		_, _ = io.Copy(c.Conn, up)
		_ = c.Conn.Close()
		there.Wait()
	}
}
