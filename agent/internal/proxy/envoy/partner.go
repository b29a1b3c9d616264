package envoy

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// partner is one very Envoy behind a name. A supervisor that was stopped, or a
// whole frozen pod, may go on with a child that has died meanwhile, whose names
// another pod's Envoy has by then: to tell that one to drain would leave nobody,
// and a foreign answer makes it abort. So a name is connected to once, and what
// is said goes to whoever had it then, or to nobody.
type partner struct {
	name *net.UnixAddr
	pid  atomic.Int64 // of a child of ours; 0: of another supervisor's, or not yet known
	conn atomic.Pointer[net.UnixConn]
}

// meet connects, if that hasn't happened yet.
func (p *partner) meet() (*net.UnixConn, error) {
	if conn := p.conn.Load(); conn != nil {
		return conn, nil
	}
	conn, err := net.DialUnix("unixgram", nil, p.name)
	if err != nil {
		return nil, err
	}
	// One that lives still lived when we connected, and its seat was its own.
	if pid := p.pid.Load(); pid != 0 && HasEnded(int(pid)) {
		conn.Close()
		return nil, fmt.Errorf("%s: process %d has ended: %w", p.name.Name, pid, syscall.ECONNREFUSED)
	}
	if !p.conn.CompareAndSwap(nil, conn) {
		conn.Close()
	}
	return p.conn.Load(), nil
}

// fd is the connection's descriptor, noFD before there is one.
func (p *partner) fd() (int, error) {
	if conn := p.conn.Load(); conn != nil {
		return fdOf(conn)
	}
	return NoFD, nil
}

// inherit goes on with a connection that another program of this process has made;
// nil: it has made none.
func (p *partner) inherit(file *os.File) error {
	if file == nil {
		return nil
	}
	conn, err := datagramSocket(file)
	if err == nil {
		p.conn.Store(conn)
	}
	return err
}

func (p *partner) close() {
	if conn := p.conn.Load(); conn != nil {
		conn.Close()
	}
}

// HasEnded tells whether a child of ours is dead, reaped or not.
func HasEnded(pid int) bool {
	state, err := ProcessState(pid)
	return os.IsNotExist(err) || state == 'Z' || state == 'X'
}

// ProcessState is the letter by which /proc tells what a process does; 0: unknown.
func ProcessState(pid int) (byte, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, state, _ := bytes.Cut(stat[max(bytes.LastIndexByte(stat, ')'), 0):], []byte(") "))
	if len(state) == 0 {
		return 0, nil
	}
	return state[0], nil
}
