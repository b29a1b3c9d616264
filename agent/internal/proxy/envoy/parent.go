package envoy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/gate"
)

// Parent is the hot-restart end of an Envoy as its children see it: requests go
// to its own socket, answers come to the name that it takes for its child's. We
// hold that name for as long as it lives. So an answer always finds somebody,
// whatever has become of the child that asked: where the name is gone Envoy
// aborts with all its connections ("hot restart sendmsg() failed", errno 2), and
// where nobody is behind the name its main thread waits for seconds (fact 4).
// And it is known which answer belongs to which question: one at a time is sent.
type Parent struct {
	conn      *net.UnixConn
	answers   *net.UnixAddr // where conn is bound
	envoy     partner       // whose it is, by its own socket
	questions chan *question
	parts     chan part
	relinked  chan struct{}
	done      chan struct{}
	freezes   chan chan ParentState
	inlet     *gate.Gate
	wait      sync.WaitGroup
	log       *slog.Logger
}

// question is a request that has an answer.
type question struct {
	data   []byte
	reply  chan message    // closed without an answer: the parent is gone
	unless <-chan struct{} // closed: nobody wants the answer any more
	again  bool            // it follows one whose answer may have gone elsewhere
}

func (q *question) unwanted() bool {
	select {
	case <-q.unless:
		return true
	default:
		return false
	}
}

// OpenParent binds the name answers, to which the caller links what Envoy takes
// for its child's name, and speaks to the Envoy behind socket until Close. That
// one need not live yet.
func OpenParent(socket, answers string, log *slog.Logger) (*Parent, error) {
	conn, err := bindName(answers)
	if err != nil {
		return nil, fmt.Errorf("bind the name for a parent's answers: %w", err)
	}
	return prepareParent(conn, socket, answers, log).begin(ParentState{}), nil
}

func prepareParent(conn *net.UnixConn, socket, answers string, log *slog.Logger) *Parent {
	return &Parent{
		conn: conn, answers: unixgram(answers), envoy: partner{name: unixgram(socket)},
		questions: make(chan *question), parts: make(chan part), relinked: make(chan struct{}, 1), done: make(chan struct{}),
		freezes: make(chan chan ParentState), inlet: gate.New(conn), log: log,
	}
}

func (p *Parent) begin(state ParentState) *Parent {
	p.wait.Go(p.receive) // both end in Close
	p.wait.Go(func() { p.serve(state.Gone) })
	return p
}

// bindName takes a name, whatever is there.
func bindName(name string) (*net.UnixConn, error) {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	conn, err := net.ListenUnixgram("unixgram", unixgram(name))
	if err != nil {
		return nil, err
	}
	// The directory is private already; this is for whoever reads `ls -l`.
	if err := os.Chmod(name, 0o600); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func unixgram(name string) *net.UnixAddr { return &net.UnixAddr{Name: name, Net: "unixgram"} }

// ask sends a request, once all earlier ones are answered, and gives where its
// answer comes. Whoever asks must take it, or close unless.
func (p *Parent) ask(request []byte, unless <-chan struct{}) <-chan message {
	q := &question{data: request, reply: make(chan message), unless: unless}
	select {
	case p.questions <- q:
	case <-p.done:
		close(q.reply)
	}
	return q.reply
}

// Born says which child of ours the Envoy is.
func (p *Parent) Born(pid int) { p.envoy.pid.Store(int64(pid)) }

// Meet connects to the Envoy that is behind the socket now (see partner). Without
// it the first word does.
func (p *Parent) Meet() error {
	_, err := p.envoy.meet()
	return err
}

// say sends a request that has no answer.
func (p *Parent) say(request []byte) error {
	met, err := p.envoy.meet()
	if err != nil {
		return err
	}
	// A parent that reads nothing must not stop us; its queue holds far more than
	// there is to say.
	met.SetWriteDeadline(time.Now().Add(time.Second))
	_, err = met.Write(request)
	return err
}

// AskToDrain has the Envoy drain: its keep-alives are told to close and new
// connections are refused at once (fact 6). For one without admin that is to be
// stopped.
func (p *Parent) AskToDrain() error {
	if err := p.say(drainRequest); err != nil {
		return fmt.Errorf("hot-restart socket: %w", err)
	}
	return nil
}

// Responds asks for the stats, as a child does at each of its flushes: an answer
// means that the main thread lives. One that comes after ctx has ended harms
// nobody.
func (p *Parent) Responds(ctx context.Context) bool {
	select {
	case m, ok := <-p.ask(statsRequest, ctx.Done()):
		m.close()
		return ok
	case <-ctx.Done():
		return false
	}
}

// Relinked tells that the Envoy's answers may have gone to another supervisor for
// a while, and come to us again. A question that it has by now may have been
// answered there, and would be waited for without end.
func (p *Parent) Relinked() {
	select {
	case p.relinked <- struct{}{}:
	default: // it is told already
	}
}

// Gone tells that the process is dead. What it had sent before is delivered
// first: the mark comes after it in the queue.
func (p *Parent) Gone() {
	p.wait.Go(func() { // ends in Close at the latest
		for {
			p.conn.SetWriteDeadline(time.Now().Add(time.Minute))
			if _, err := p.conn.WriteToUnix(goneMark, p.answers); !errors.Is(err, os.ErrDeadlineExceeded) {
				return
			}
		}
	})
}

var goneMark = []byte("aether: this parent is dead")

// Close gives up the name; only when the Envoy is dead.
func (p *Parent) Close() {
	p.inlet.Close()
	p.conn.Close()
	p.wait.Wait()
	p.envoy.close()
	os.Remove(p.answers.Name)
}

// receive hands on what arrives.
func (p *Parent) receive() {
	defer close(p.parts)
	r := newReceiver(p.conn)
	for {
		part, err := r.next()
		if p.inlet.Wait(err) {
			continue
		}
		if err != nil {
			return
		}
		p.parts <- part
	}
}

// serve owns the queue: its first question is with the parent.
func (p *Parent) serve(gone bool) {
	defer close(p.done)
	var queue []*question
	var got message
	for {
		freezes := p.freezes
		if len(queue) > 0 || len(got.parts) > 0 {
			freezes = nil // a question is with the parent, or half of its answer with us
		}
		select {
		case f := <-freezes:
			f <- ParentState{Gone: gone}
			continue
		case q := <-p.questions:
			queue = append(queue, q)
			if len(queue) > 1 {
				continue
			}
		case <-p.relinked:
			if len(queue) == 0 {
				continue
			}
			// Envoy answers in order: what it says to this one comes after whatever it
			// says to the other, which is no answer to it, or is one of the same kind.
			queue = append([]*question{{data: statsRequest, again: true}}, queue...)
			got.close() // half an answer
			got = message{}
		case d, ok := <-p.parts:
			switch {
			case !ok:
				fail(queue)
				got.close()
				return
			case bytes.Equal(d.data, goneMark):
				gone = true
			case !got.add(d):
				continue // more is to come, or it is no answer
			default:
				asked := len(queue)
				queue = p.answered(queue, got)
				got = message{}
				if asked > 0 && len(queue) == asked {
					continue // it was no answer to our question, which the parent still has
				}
			}
		}
		if !gone {
			queue, gone = p.askNext(queue)
		}
		if gone {
			queue = fail(queue)
			got.close() // half an answer
			got = message{}
		}
	}
}

// answered gives the first question its answer. Nobody may have asked: in plain
// mode a child asks without us, and so does another supervisor's; the answer
// comes when it is dead.
func (p *Parent) answered(queue []*question, m message) []*question {
	if len(queue) == 0 || !repliesTo(m.bytes(), ParseRequest(queue[0].data)) {
		m.close()
		return queue
	}
	if queue[0].again {
		m.close()
		return queue[1:]
	}
	select {
	case queue[0].reply <- m:
	case <-queue[0].unless:
		m.close()
	}
	return queue[1:]
}

// askNext sends the first question that is still wanted.
func (p *Parent) askNext(queue []*question) (left []*question, gone bool) {
	for len(queue) > 0 && queue[0].unwanted() {
		queue = queue[1:]
	}
	if len(queue) == 0 {
		return nil, false
	}
	err := p.say(queue[0].data)
	switch {
	case err == nil || errors.Is(err, net.ErrClosed):
		return queue, false
	case errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTCONN):
		return queue, true
	}
	p.log.Warn("a request can't be sent to the parent", "request", ParseRequest(queue[0].data).String(), "error", err)
	return queue, true
}

func fail(queue []*question) []*question {
	for _, q := range queue {
		if !q.again {
			close(q.reply)
		}
	}
	return nil
}
