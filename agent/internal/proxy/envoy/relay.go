package envoy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Relay stands between a newcomer and its parent: bound at the parent's name
// under the newcomer's path, it sees each request and passes, withholds or
// answers it (docs/concepts.md). It must live as long as the newcomer: a
// newcomer whose requests find nobody aborts ten seconds later (fact 4).
type Relay struct {
	conn     *net.UnixConn
	toParent *net.UnixAddr
	toChild  *net.UnixAddr
	opts     RelayOptions

	commands chan relayInput
	done     chan struct{}
	passed   atomic.Pointer[time.Time] // when a request was last passed; nil: never
}

// RelayOptions say where a relay stands and what it tells.
type RelayOptions struct {
	Listen        string    // the parent's name under the newcomer's path
	Parent        string    // the parent's own socket
	Child         string    // the newcomer's own socket, for our answers
	FirstStart    time.Time // start of the first epoch, told when the parent can't
	PassTerminate bool      // UDP and QUIC: the newcomer's own timer ends the parent
	AnswerAdmin   bool      // the parent keeps its admin, a socket of its own
	// Seen is called once for each kind of request as it first arrives, on the
	// relay's goroutine; it must not block.
	Seen func(Request)
	Log  *slog.Logger
}

// StartRelay binds the relay's name and serves it until Close.
func StartRelay(o RelayOptions) (*Relay, error) {
	if err := os.Remove(o.Listen); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	conn, err := net.ListenUnixgram("unixgram", unixgram(o.Listen))
	if err != nil {
		return nil, fmt.Errorf("bind the relay: %w", err)
	}
	// The directory is private already; this is for whoever reads `ls -l`.
	if err := os.Chmod(o.Listen, 0o600); err != nil {
		conn.Close()
		return nil, err
	}
	r := &Relay{
		conn: conn, toParent: unixgram(o.Parent), toChild: unixgram(o.Child), opts: o,
		commands: make(chan relayInput, 1), done: make(chan struct{}),
	}
	go r.serve() // ends in Close
	return r, nil
}

func unixgram(name string) *net.UnixAddr { return &net.UnixAddr{Name: name, Net: "unixgram"} }

// Commit passes the withheld drain_listeners, and from now on any other.
func (r *Relay) Commit() { r.tell(relayInput{commit: true}) }

// ParentGone makes the relay answer in the parent's place, the request that
// may be outstanding included.
func (r *Relay) ParentGone() { r.tell(relayInput{gone: true}) }

// Close ends the relay and takes its name away; only when the newcomer is dead.
func (r *Relay) Close() {
	r.conn.Close()
	<-r.done
	os.Remove(r.opts.Listen)
}

// tell wakes serve, which may wait for a datagram: a deadline that has passed
// ends the wait.
func (r *Relay) tell(in relayInput) {
	select {
	case r.commands <- in:
		r.conn.SetReadDeadline(longAgo)
	case <-r.done:
	}
}

var longAgo = time.Unix(1, 0)

// largestDatagram is room for any of Envoy's, which have at most 4096 bytes.
const largestDatagram = 1 << 16

// serve owns the relay's state.
func (r *Relay) serve() {
	defer close(r.done)
	state := relayState{passTerminate: r.opts.PassTerminate, answerAdmin: r.opts.AnswerAdmin}
	seen := map[Request]bool{}
	buf := make([]byte, largestDatagram)
	pause := firstLook
	for {
		n, _, err := r.conn.ReadFromUnix(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			r.conn.SetReadDeadline(time.Time{}) // before the look at the commands: see tell
			if state.begun {
				r.askIfTaken()
			}
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			r.opts.Log.Warn("relay: receive failed", "error", err)
			return
		default:
			if in, ok := r.arrived(bytes.Clone(buf[:n]), seen); ok {
				state = r.decide(state, in)
			}
		}
		for len(r.commands) > 0 {
			state = r.decide(state, <-r.commands)
		}
		if state.begun {
			r.lookAgainIn(pause)
			pause = min(2*pause, mostLook)
		}
	}
}

// lookAgainIn ends the wait for a datagram early, unless a command came
// meanwhile, whose deadline this would replace.
func (r *Relay) lookAgainIn(pause time.Duration) {
	r.conn.SetReadDeadline(time.Now().Add(pause))
	if len(r.commands) > 0 {
		r.conn.SetReadDeadline(longAgo)
	}
}

// arrived turns a datagram into an input; seen remembers what was told. What is
// no request goes no further: a parent aborts for it ("received a brokenly tiny
// message fragment"), and that is the epoch that serves.
func (r *Relay) arrived(d []byte, seen map[Request]bool) (relayInput, bool) {
	if bytes.Equal(d, takenMark) {
		return relayInput{taken: true}, true
	}
	k, first := ParseRequest(d), false
	first, seen[k] = !seen[k], true
	if !sound(d) {
		if first {
			r.opts.Log.Warn("relay: dropped a datagram that is no request", "bytes", len(d))
		}
		return relayInput{}, false
	}
	if first {
		r.opts.Seen(k)
	}
	return relayInput{datagram: d}, true
}

// decide lets the state decide and carries it out.
func (r *Relay) decide(state relayState, in relayInput) relayState {
	state, outs := state.next(in)
	for len(outs) > 0 {
		out := outs[0]
		outs = outs[1:]
		if r.emit(out) == errParentGone && !state.gone {
			var more []relayOutput
			state, more = state.next(relayInput{gone: true})
			outs = append(outs, more...)
		}
	}
	return state
}

var errParentGone = errors.New("parent gone")

// emit sends one datagram. A parent that reads nothing must not stop us: the
// queue holds far more than the one request a newcomer has outstanding.
func (r *Relay) emit(o relayOutput) error {
	to, data := r.toParent, o.pass
	if data == nil {
		to, data = r.toChild, o.answerData(r.opts.FirstStart)
	}
	if data == nil {
		return nil
	}
	now := time.Now()
	if to == r.toParent {
		r.passed.Store(&now)
	}
	r.conn.SetWriteDeadline(now.Add(time.Second))
	_, err := r.conn.WriteToUnix(data, to)
	switch {
	case err == nil || errors.Is(err, net.ErrClosed):
		return nil
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT):
		if to == r.toParent {
			return errParentGone
		}
		return nil // the newcomer is dead as well; whoever reaps it tells of it
	}
	r.opts.Log.Warn("relay: send failed", "to", to.Name, "request", ParseRequest(data).String(), "error", err)
	return nil
}

// LastPassed is when a request was last passed to the parent; zero: never.
func (r *Relay) LastPassed() time.Time {
	if at := r.passed.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
