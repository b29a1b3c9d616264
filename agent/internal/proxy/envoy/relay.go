package envoy

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"aether.internal/agent/internal/proxy/gate"
)

// Relay stands between a newcomer and its parent: bound at the parent's name
// under the newcomer's path, it sees each request and passes, withholds or
// answers it, and hands on the parent's answers (docs/concepts.md). It must live
// as long as the newcomer: a newcomer whose requests find nobody aborts ten
// seconds later (fact 4).
type Relay struct {
	conn     *net.UnixConn
	child    partner // the newcomer
	opts     RelayOptions
	requests chan part
	commits  chan struct{}
	spares   chan struct{}
	closing  chan struct{}
	freezes  chan chan RelayState
	inlet    *gate.Gate
	wait     sync.WaitGroup
}

// RelayOptions say where a relay stands and what it tells.
type RelayOptions struct {
	Listen        string // the parent's name under the newcomer's path
	Child         string // the newcomer's own socket
	Parent        *Parent
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
	conn, err := bindName(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("bind the relay: %w", err)
	}
	return prepareRelay(conn, o).begin(RelayState{}), nil
}

func prepareRelay(conn *net.UnixConn, o RelayOptions) *Relay {
	return &Relay{
		conn: conn, child: partner{name: unixgram(o.Child)}, opts: o,
		requests: make(chan part), commits: make(chan struct{}, 1), spares: make(chan struct{}, 1), closing: make(chan struct{}),
		freezes: make(chan chan RelayState), inlet: gate.New(conn),
	}
}

func (r *Relay) begin(state RelayState) *Relay {
	r.wait.Go(r.receive) // both end in Close
	r.wait.Go(func() { r.serve(state) })
	return r
}

// Born says which child of ours the newcomer is.
func (r *Relay) Born(pid int) { r.child.pid.Store(int64(pid)) }

// Commit passes the withheld drain_listeners, and from now on any other.
func (r *Relay) Commit() {
	select {
	case r.commits <- struct{}{}:
	default: // it is told already
	}
}

// Spare keeps the newcomer's terminate from its parent from now on: an Envoy that
// gets SIGTERM ends its parent as well (fact 15), and that one may be another
// supervisor's, with connections.
func (r *Relay) Spare() {
	select {
	case r.spares <- struct{}{}:
	default: // it is told already
	}
}

// Close ends the relay and takes its name away; only when the newcomer is dead.
func (r *Relay) Close() {
	close(r.closing)
	r.inlet.Close()
	r.conn.Close()
	r.wait.Wait()
	r.child.close()
	os.Remove(r.opts.Listen)
}

func (r *Relay) receive() {
	defer close(r.requests)
	receiver := newReceiver(r.conn)
	for {
		part, err := receiver.next()
		if r.inlet.Wait(err) {
			continue
		}
		if err != nil {
			return
		}
		r.requests <- part
	}
}

// statsPatience is how often, a second apart, a relay waits for a parent's
// stats. Each wait is one of its own, so that a supervisor that was stopped
// doesn't find all of it over.
const statsPatience = 5

// serve owns the relay's state.
func (r *Relay) serve(state RelayState) {
	s := service{Relay: r, seen: map[Request]bool{}, takeBack: state.TakeBack, state: relayState{
		passTerminate: r.opts.PassTerminate, answerAdmin: r.opts.AnswerAdmin,
		committed: state.Committed, gone: state.Gone,
	}}
	tick := time.NewTicker(time.Second)
	tick.Stop()
	for {
		requests := r.requests
		if s.state.waits != UnknownRequest { // one question at a time
			requests = nil
		}
		freezes := r.freezes
		if !s.idle() {
			freezes = nil
		}
		select {
		case f := <-freezes:
			f <- RelayState{Committed: s.state.committed, Spared: !s.state.passTerminate, Gone: s.state.gone, TakeBack: s.takeBack}
		case d, ok := <-requests:
			if !ok {
				return
			}
			s.arrived(d)
			if s.state.waits == StatsRequest {
				s.patience = statsPatience
				tick.Reset(time.Second)
			}
		case m, ok := <-s.reply:
			s.replied(m, ok)
		case <-r.commits:
			s.decide(relayInput{commit: true})
		case <-r.spares:
			s.decide(relayInput{spare: true})
		case <-tick.C:
			s.ticked()
		case <-r.closing:
			for range r.requests { // until receive has ended
			}
			return
		}
		if s.state.waits != StatsRequest {
			tick.Stop()
		}
	}
}

// service is what serve remembers beside the state.
type service struct {
	*Relay
	state    relayState
	seen     map[Request]bool
	reply    <-chan message // of the question that is with the parent
	answer   message        // the parent's, on its way
	patience int            // ticks left
	takeBack []byte         // the parent's gauges at 0, for when it is gone
}

// arrived takes a datagram of the newcomer. What is no request goes no further:
// a parent aborts for it ("received a brokenly tiny message fragment"), and that
// is the epoch that serves.
func (s *service) arrived(d part) {
	d.close()
	k := ParseRequest(d.data)
	first := !s.seen[k]
	s.seen[k] = true
	if !sound(d.data) {
		if first {
			s.opts.Log.Warn("relay: dropped a datagram that is no request", "bytes", len(d.data))
		}
		return
	}
	if first {
		s.opts.Seen(k)
	}
	select {
	case <-s.spares: // it was said before
		s.decide(relayInput{spare: true})
	default:
	}
	s.decide(relayInput{request: d.data})
}

func (s *service) replied(m message, ok bool) {
	s.reply = nil
	if !ok {
		s.decide(relayInput{gone: true})
		return
	}
	s.answer = m
	s.decide(relayInput{answered: true})
	s.answer.close() // late: it was not delivered
	s.answer = message{}
}

func (s *service) ticked() {
	if s.patience--; s.patience > 0 {
		return
	}
	s.opts.Log.Warn("relay: the parent does not answer, so the newcomer gets no stats of it for now; is it stopped?")
	s.decide(relayInput{overdue: true})
}

// decide lets the state decide and carries it out.
func (s *service) decide(in relayInput) {
	var outs []relayOutput
	s.state, outs = s.state.next(in)
	for _, out := range outs {
		switch {
		case out.ask != nil:
			s.reply = s.opts.Parent.ask(out.ask, s.closing)
		case out.say != nil:
			s.say(out.say)
		case out.deliver:
			s.deliver()
		default:
			for d := range slices.Chunk(s.answerMyself(out.answer), envoysDatagram) {
				s.tell(part{data: d})
			}
		}
	}
}

// say passes what needs no answer. A parent that is gone needs none of it.
func (s *service) say(d []byte) {
	if err := s.opts.Parent.say(d); err != nil {
		s.opts.Log.Debug("relay: the parent can't be told", "request", ParseRequest(d).String(), "error", err)
	}
}

func (s *service) deliver() {
	if all := s.answer.bytes(); submessage(submessage(all, replyField), statsField) != nil {
		s.takeBack = gaugesAtZero(all)
	}
	for _, p := range s.answer.parts {
		s.tell(p)
	}
	s.answer = message{}
}

// answerMyself answers in the parent's place.
func (s *service) answerMyself(kind Request) []byte {
	if kind == StatsRequest && s.state.gone && s.takeBack != nil {
		defer func() { s.takeBack = nil }()
		return s.takeBack
	}
	return answerFor(kind, s.opts.FirstStart)
}

// tell sends a datagram to the newcomer. One that is stopped is waited for,
// until it goes on or Close.
func (s *service) tell(p part) {
	conn, err := s.child.meet()
	if err != nil {
		p.close()
	} else {
		err = p.send(conn)
	}
	if err != nil { // it is dead; whoever reaps it tells of it
		s.opts.Log.Debug("relay: the newcomer can't be answered", "error", err)
	}
}
