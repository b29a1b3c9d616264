// Package upstream is the server behind the Envoy under load: HTTP/1.1,
// HTTP/2 without TLS and gRPC on one loopback port, a TCP echo on another.
// It never closes a connection by itself, so whatever is cut was cut by the
// proxy in front of it.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"google.golang.org/grpc"

	"aether.internal/test/load/internal/wire"
)

// Server is running from Start to Close.
type Server struct {
	HTTP string // host:port of HTTP/1.1, h2c and gRPC
	TCP  string // host:port of the TCP echo

	web      *http.Server
	rpc      *grpc.Server
	echo     *ledger
	stop     context.CancelFunc
	finished sync.WaitGroup
}

// Start serves on loopback ports the kernel chooses.
func Start() (*Server, error) { return StartAs("") }

// StartAs is Start, and the responses carry the epoch header as an Envoy
// would set it: for tests that have no Envoy. Empty: no header.
func StartAs(epoch string) (*Server, error) {
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("upstream: HTTP listener: %w", err)
	}
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		_ = web.Close()
		return nil, fmt.Errorf("upstream: TCP listener: %w", err)
	}
	return serve(web, echo, epoch), nil
}

func serve(web, echo net.Listener, epoch string) *Server {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{
		HTTP: web.Addr().String(), TCP: echo.Addr().String(),
		rpc:  grpc.NewServer(grpc.ForceServerCodec(wire.Codec{})),
		echo: newLedger(echo), stop: stop,
	}
	s.rpc.RegisterService(wire.ServiceDesc(), nil)
	s.web = &http.Server{Handler: routes(s.rpc, epoch), BaseContext: func(net.Listener) context.Context { return ctx }}
	// With the default of 250 streams a backlog in front of us ends in
	// REFUSED_STREAM, which looks like the proxy's failure.
	s.web.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 1 << 20}
	s.web.Protocols = new(http.Protocols)
	s.web.Protocols.SetHTTP1(true)
	s.web.Protocols.SetUnencryptedHTTP2(true)
	// The web server's and the echo's accept loops, joined by Close.
	s.finished.Go(func() { _ = s.web.Serve(newLedger(web)) }) // http.ErrServerClosed is its only end
	s.finished.Go(func() { serveEcho(s.echo) })
	return s
}

// Close ends both servers at once, streams included, and waits for them.
func (s *Server) Close() error {
	s.stop() // streaming handlers return
	err := errors.Join(s.web.Close(), s.echo.Close())
	s.rpc.Stop()
	s.finished.Wait()
	return err
}
