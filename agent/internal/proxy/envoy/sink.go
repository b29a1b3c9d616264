package envoy

import (
	"fmt"
	"net"
	"os"
)

// Sink takes, at a dead newcomer's name, what its parent still sends there. A
// parent that is stopped or busy answers later, and where the name is gone it
// aborts ("hot restart sendmsg() failed", errno 2), with all its connections;
// where the name is there and nobody behind it, its main thread waits for
// seconds.
type Sink struct {
	conn *net.UnixConn
	name string
	done chan struct{}
}

// OpenSink puts a sink in the place of whatever has that name.
func OpenSink(name string) (*Sink, error) {
	next := name + ".new" // shorter than the longest name there is (Check)
	if err := os.RemoveAll(next); err != nil {
		return nil, err
	}
	conn, err := net.ListenUnixgram("unixgram", unixgram(next))
	if err != nil {
		return nil, fmt.Errorf("take a dead newcomer's place: %w", err)
	}
	if err = os.Chmod(next, 0o600); err == nil {
		err = os.Rename(next, name) // never a moment without the name
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	s := &Sink{conn: conn, name: name, done: make(chan struct{})}
	go s.swallow() // ends in Close
	return s, nil
}

// swallow reads without room for descriptors: the kernel closes those that
// come along.
func (s *Sink) swallow() {
	defer close(s.done)
	buf := make([]byte, 1)
	for {
		if _, err := s.conn.Read(buf); err != nil {
			return
		}
	}
}

// Close ends the sink and takes its name away; only when nobody sends any more,
// or somebody else is about to take the name.
func (s *Sink) Close() {
	s.conn.Close()
	<-s.done
	os.Remove(s.name)
}
