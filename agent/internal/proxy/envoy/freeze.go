package envoy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"syscall"

	"aether.internal/agent/internal/proxy/gate"
)

// This file hands relays and parents' ends over to another program in the same
// process: frozen, nothing is read of their sockets, and what Envoy sends waits in
// the kernel; the other program goes on with the same sockets.

// RelayState is what a relay is at a moment when no question is under way.
type RelayState struct {
	Committed bool   `json:"committed"`
	Spared    bool   `json:"spared"` // its parent is not ended by it any more
	Gone      bool   `json:"gone"`   // its parent is dead
	TakeBack  []byte `json:"take_back,omitempty"`
}

// ParentState is the same of a parent's end.
type ParentState struct {
	Gone bool `json:"gone"`
}

// errBusy: an Envoy has not answered yet, or has not been answered.
var errBusy = errors.New("a hot-restart request is still waiting for its answer; is an Envoy stopped?")

// idle: nobody waits for an answer, and nothing is withheld.
func (s *service) idle() bool {
	return s.state.waits == UnknownRequest && !s.state.asked && s.state.held == nil && s.state.ended == nil && len(s.commits) == 0
}

// Freeze stops the relay between two questions, until Thaw. An error means that
// there was no such moment before ctx's end; Thaw is due all the same.
func (r *Relay) Freeze(ctx context.Context) (RelayState, error) {
	return frozen(ctx, r.inlet, r.freezes)
}

// Thaw lets it go on.
func (r *Relay) Thaw() { r.inlet.Open() }

// Freeze stops the parent's end, until Thaw. All relays that ask it must be
// frozen by now.
func (p *Parent) Freeze(ctx context.Context) (ParentState, error) {
	return frozen(ctx, p.inlet, p.freezes)
}

// Thaw lets it go on.
func (p *Parent) Thaw() { p.inlet.Open() }

func frozen[S any](ctx context.Context, in *gate.Gate, freezes chan chan S) (S, error) {
	var state S
	if !in.Shut(ctx) {
		return state, errBusy
	}
	reply := make(chan S, 1)
	select {
	case freezes <- reply:
		return <-reply, nil
	case <-ctx.Done():
		return state, errBusy
	}
}

// NoFD is no descriptor.
const NoFD = -1

// FDs are the descriptors of the socket and of the connection to the Envoy that is
// answered, for whoever goes on with them. They stay the relay's.
func (r *Relay) FDs() (socket, envoy int, _ error) { return fdsOf(r.conn, &r.child) }

// FDs are the same of a parent's end and the Envoy that is asked.
func (p *Parent) FDs() (socket, envoy int, _ error) { return fdsOf(p.conn, &p.envoy) }

func fdsOf(conn syscall.Conn, with *partner) (socket, envoy int, err error) {
	if socket, err = fdOf(conn); err != nil {
		return NoFD, NoFD, err
	}
	envoy, err = with.fd()
	return socket, envoy, err
}

func fdOf(conn syscall.Conn) (int, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := NoFD
	err = raw.Control(func(n uintptr) { fd = int(n) })
	return fd, err
}

// Resumed is what is gone on with: the descriptors of FDs as files, which can be
// closed afterwards (Envoy is nil where there was none), and which child of ours
// the Envoy is, 0 for another supervisor's.
type Resumed struct {
	Socket, Envoy *os.File
	PID           int
}

// ResumeRelay goes on where Freeze has stopped. Nothing but requests after the
// commit are to come, so o.Seen is not called. o.Parent may be nil where state says
// that it has gone.
func ResumeRelay(from Resumed, o RelayOptions, state RelayState) (*Relay, error) {
	if o.Parent == nil && !state.Gone {
		return nil, errors.New("a relay without a parent")
	}
	conn, err := datagramSocket(from.Socket)
	if err != nil {
		return nil, fmt.Errorf("the relay's socket: %w", err)
	}
	o.Seen = func(Request) {}
	o.PassTerminate = o.PassTerminate && !state.Spared
	r := prepareRelay(conn, o)
	r.Born(from.PID)
	if err := r.child.inherit(from.Envoy); err != nil {
		return nil, errors.Join(fmt.Errorf("the relay's newcomer: %w", err), conn.Close())
	}
	return r.begin(state), nil
}

// ResumeParent goes on where Freeze has stopped.
func ResumeParent(from Resumed, socket, answers string, state ParentState, log *slog.Logger) (*Parent, error) {
	conn, err := datagramSocket(from.Socket)
	if err != nil {
		return nil, fmt.Errorf("the socket of a parent's answers: %w", err)
	}
	p := prepareParent(conn, socket, answers, log)
	p.Born(from.PID)
	if err := p.envoy.inherit(from.Envoy); err != nil {
		return nil, errors.Join(fmt.Errorf("a parent's own socket: %w", err), conn.Close())
	}
	return p.begin(state), nil
}

// datagramSocket makes file's socket one of ours; file can be closed.
func datagramSocket(file *os.File) (*net.UnixConn, error) {
	conn, err := net.FilePacketConn(file)
	if err != nil {
		return nil, err
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%s is no Unix socket", file.Name()), conn.Close())
	}
	return c, nil
}
