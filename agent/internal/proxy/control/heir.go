package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
)

// This file hands the control socket over to another program in the same process.
// Who connects meanwhile waits in the kernel's queue.

// Files are the descriptors of a server that rests. They stay its own.
type Files struct{ Lock, Listener int }

// pause is a wish to rest, until resume is closed.
type pause struct {
	files  chan Files
	resume chan struct{}
}

// Pause lets answers that are due go out, within a second, and answers nobody from
// then on until resume is called. It fails when the server ends first.
func (s *Server) Pause(ctx context.Context) (_ Files, resume func(), _ error) {
	p := pause{make(chan Files, 1), make(chan struct{})}
	resume = func() { close(p.resume) }
	select {
	case s.pauses <- p:
	case <-ctx.Done():
		return Files{}, func() {}, context.Cause(ctx)
	}
	files, ok := <-p.files
	if !ok {
		return Files{}, resume, errors.New("the control socket can't be handed over")
	}
	return files, resume, nil
}

// rest ends the HTTP server but not the socket.
func (s *Server) rest(ctx context.Context, srv *http.Server, served <-chan error, p pause) error {
	kept, err := s.listener.(*net.UnixListener).File() // outlives the listener, which srv closes
	if err != nil {
		close(p.files)
		<-p.resume
		return err
	}
	defer kept.Close()
	s.listener.(*net.UnixListener).SetUnlinkOnClose(false)
	s.farewell(ctx, srv)
	<-served
	p.files <- Files{int(s.lock.Fd()), int(kept.Fd())}
	select {
	case <-p.resume:
	case <-ctx.Done():
	}
	s.listener, err = net.FileListener(kept)
	return err
}

// Inherit goes on with a socket that another program of this process has handed
// over; the files are the descriptors that Pause gave. That of the listener can be
// closed afterwards.
func Inherit(path string, lock, listener *os.File) (*Server, error) {
	l, err := net.FileListener(listener)
	if err != nil {
		return nil, fmt.Errorf("control socket %s: the one that was handed over: %w", path, err)
	}
	own, err := os.Lstat(path)
	if err != nil {
		own = nil // somebody has removed it, and what comes there is not ours
	}
	return &Server{path: path, lock: lock, listener: l, own: own, pauses: make(chan pause)}, nil
}
