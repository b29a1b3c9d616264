package upstream

import (
	"io"
	"net"
	"sync"
)

// ledger is a listener that knows its open connections. The mutex guards a
// set that many connection goroutines leave in their own time.
type ledger struct {
	net.Listener
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func newLedger(l net.Listener) *ledger {
	return &ledger{Listener: l, open: map[net.Conn]struct{}{}}
}

// Accept enters the connection into the ledger.
func (l *ledger) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed { // accepted in the moment of Close
		_ = c.Close()
		return nil, net.ErrClosed
	}
	l.open[c] = struct{}{}
	return &entry{c.(*net.TCPConn), l}, nil
}

// Close closes the listener and every open connection: net/http forgets those
// it has turned into HTTP/2 ones.
func (l *ledger) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for c := range l.open {
		_ = c.Close()
	}
	return err
}

// entry leaves the ledger when it is closed.
type entry struct {
	*net.TCPConn
	l *ledger
}

func (e *entry) Close() error {
	e.l.mu.Lock()
	delete(e.l.open, e.TCPConn)
	e.l.mu.Unlock()
	return e.TCPConn.Close()
}

// serveEcho sends back what it gets until the peer has half-closed, then
// closes: a TCP proxy must carry the half-close both ways.
func serveEcho(l net.Listener) {
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return // closed: the only error a loopback listener has
		}
		// One per connection, ended by the peer or by Close, joined above.
		connections.Go(func() {
			defer c.Close()
			_, _ = io.Copy(c.(*entry).TCPConn, c.(*entry).TCPConn)
		})
	}
}
