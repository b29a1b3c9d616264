package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"
)

// Limits of a client that dawdles or means harm. A reload itself has no limit
// of ours: it ends with the client's patience.
const (
	headerTime   = 5 * time.Second
	requestTime  = 10 * time.Second // header and body
	answerTime   = 10 * time.Second // also the supervisor's, for a status
	idleTime     = time.Minute
	farewellTime = time.Second
	maxHeader    = 16 << 10
	maxBody      = 4 << 10
)

// Server has the control socket. Nothing is answered before Serve.
type Server struct {
	path     string
	lock     *os.File
	listener net.Listener
	own      os.FileInfo // of the socket's file
	pauses   chan pause
}

// Listen takes the control socket at path and makes its directory when missing.
// It replaces a socket that nobody listens on. It fails with ErrTaken when
// somebody answers there, and with a sentence when something else is in the way
// or path is too long for a socket.
func Listen(path string) (*Server, error) {
	if err := CheckPath(path); err != nil {
		return nil, err
	}
	if err := makeDir(path); err != nil {
		return nil, err
	}
	lock, err := takeLock(path)
	if err != nil {
		return nil, err
	}
	s := &Server{path: path, lock: lock, pauses: make(chan pause)}
	if err := s.open(); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) open() (err error) {
	if err = clearDead(s.path); err != nil {
		return err
	}
	if s.listener, err = bind(s.path); err != nil {
		return err
	}
	if s.own, err = os.Lstat(s.path); err != nil {
		s.listener.Close()
		return fmt.Errorf("control socket: %w", err)
	}
	return nil
}

// Path is where the socket is.
func (s *Server) Path() string { return s.path }

// Close removes the socket and frees its lock. Serve does so itself.
func (s *Server) Close() {
	s.unlink()
	s.listener.Close()
	s.lock.Close()
}

// unlink removes our own file only. Ours is open until later, so that no other
// file can have its inode number by now.
func (s *Server) unlink() {
	if now, err := os.Lstat(s.path); err == nil && os.SameFile(now, s.own) {
		_ = os.Remove(s.path)
	}
}

// Serve answers until ctx ends, then removes the socket and closes. A reload
// that waits is told that the supervisor stops. It returns nil when ctx ended.
func (s *Server) Serve(ctx context.Context, sup Supervisor, log *slog.Logger) error {
	defer func() { s.Close() }()
	srv := newHTTP(ctx, sup, log)
	served := make(chan error, 1)
	serve := func() { served <- srv.Serve(s.listener) }
	go serve() // acceptor, joined on both ways out
	for ctx.Err() == nil {
		select {
		case err := <-served:
			_ = srv.Close()
			return fmt.Errorf("control socket %s: %w", s.path, err)
		case p := <-s.pauses:
			if err := s.rest(ctx, srv, served, p); err != nil {
				return fmt.Errorf("control socket %s: %w", s.path, err)
			}
			srv = newHTTP(ctx, sup, log)
			go serve() // as above
		case <-ctx.Done():
		}
	}
	s.unlink() // before the listener closes: a socket that is there answers
	s.farewell(ctx, srv)
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("control socket %s: %w", s.path, err)
	}
	return nil
}

func newHTTP(ctx context.Context, sup Supervisor, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           handler{routes(sup)},
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       requestTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// farewell lets answers that are due go out.
func (s *Server) farewell(ctx context.Context, srv *http.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewellTime)
	defer cancel()
	if srv.Shutdown(ctx) != nil {
		_ = srv.Close()
	}
}
