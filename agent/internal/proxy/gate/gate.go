// Package gate stops a goroutine that reads a socket or a pipe, between two reads,
// so that another program can go on with the same descriptor: nothing that was
// read is lost, and what isn't waits in the kernel.
package gate

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"
)

// Source is what is read.
type Source interface{ SetReadDeadline(time.Time) error }

// Gate is one goroutine's, which reads from what it was made for.
type Gate struct {
	source Source
	closed chan struct{}

	mu     sync.Mutex    // between the reader and whoever shuts
	opened chan struct{} // closed when it opens again; nil: it is open
	parked chan struct{} // closed when the reader waits at the gate
}

// New makes an open one.
func New(s Source) *Gate {
	return &Gate{source: s, closed: make(chan struct{})}
}

// Wait is called by the reader after each read: true when it was told to wait, and
// shall read on now. A nil gate is always open.
func (g *Gate) Wait(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	g.mu.Lock()
	opened, parked := g.opened, g.parked
	g.mu.Unlock()
	if opened == nil { // open again already
		return true
	}
	close(parked)
	select {
	case <-opened:
		return true
	case <-g.closed:
		return false
	}
}

// Shut returns once the reader has parked; what it had read was taken from it.
func (g *Gate) Shut(ctx context.Context) bool {
	g.mu.Lock()
	g.opened, g.parked = make(chan struct{}), make(chan struct{})
	parked := g.parked
	_ = g.source.SetReadDeadline(time.Now())
	g.mu.Unlock()
	select {
	case <-parked:
		return true
	case <-ctx.Done():
		return false
	}
}

// Open undoes Shut, whether that succeeded or not.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		_ = g.source.SetReadDeadline(time.Time{})
		close(g.opened)
		g.opened = nil
	}
}

// Close lets a reader that waits end: Wait is false then.
func (g *Gate) Close() { close(g.closed) }
