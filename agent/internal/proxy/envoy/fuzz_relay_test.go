package envoy

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// byProtobuf reads a datagram with protobuf's own reader: the second opinion.
// sure is false where ParseRequest may answer as it likes.
func byProtobuf(d []byte) (r Request, sure bool) {
	if len(d) < frameHeader || binary.BigEndian.Uint64(d) != uint64(len(d)-frameHeader) {
		return UnknownRequest, false
	}
	number, kind, n := protowire.ConsumeTag(d[frameHeader:])
	if n < 0 || number != 1 || kind != protowire.BytesType {
		return UnknownRequest, false
	}
	message, m := protowire.ConsumeBytes(d[frameHeader+n:])
	if m < 0 {
		return UnknownRequest, false
	}
	number, kind, n = protowire.ConsumeTag(message)
	if n != 1 || kind != protowire.BytesType || number > protowire.Number(Terminate) {
		return UnknownRequest, false
	}
	return Request(number), true
}

// FuzzHotRestartDatagram compares with protobuf, and looks at the answers.
func FuzzHotRestartDatagram(f *testing.F) {
	for r := PassListenSocket; r <= Terminate; r++ {
		f.Add(request(r))
	}
	f.Add(frame(0x0a, 22, 0x0a, 20, 0x0a, 16, 't', 'c', 'p', ':', '/', '/', '0', '.', '0', '.', '0', '.', '0', ':', '8', '0', 0x10, 1))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 20))
	f.Fuzz(func(t *testing.T, datagram []byte) {
		r := ParseRequest(datagram)
		if r < UnknownRequest || r > Terminate || r.String() == "" {
			t.Fatalf("request %d", r)
		}
		if want, sure := byProtobuf(datagram); sure && r != want {
			t.Errorf("%x is %v, by protobuf %v", datagram, r, want)
		}
		answer := answerFor(r, time.Unix(int64(len(datagram))<<20, 0))
		if expectsAnswer(r) != (answer != nil) {
			t.Errorf("%v: answer %x", r, answer)
		}
		if answer != nil {
			checkAnswer(t, r, answer)
			checkAnswer(t, r, append(bytes.Clone(answerBegun), restOf(answer)...))
		}
	})
}

// checkAnswer: a frame of its own length, whose reply is of the request's kind:
// Envoy aborts at another one.
func checkAnswer(t *testing.T, r Request, answer []byte) {
	t.Helper()
	if binary.BigEndian.Uint64(answer) != uint64(len(answer)-frameHeader) {
		t.Fatalf("%v: length %x", r, answer)
	}
	checkFields(t, answer[frameHeader:])
	number, _, n := protowire.ConsumeTag(answer[frameHeader:])
	reply, m := protowire.ConsumeBytes(answer[frameHeader+max(n, 0):])
	if n < 0 || m < 0 || number != 2 {
		t.Fatalf("%v: no reply in %x", r, answer)
	}
	checkFields(t, reply)
	field, kind, n := protowire.ConsumeTag(reply)
	if n < 0 || kind != protowire.BytesType {
		t.Fatalf("%v: reply %x", r, reply)
	}
	if want := map[Request]protowire.Number{PassListenSocket: 1, ShutdownAdmin: 2, StatsRequest: 3}[r]; field != want {
		t.Errorf("%v is answered by field %d of reply", r, field)
	}
}

// checkFields reads a message to its end.
func checkFields(t *testing.T, message []byte) {
	t.Helper()
	for rest := message; len(rest) > 0; {
		_, _, n := protowire.ConsumeField(rest)
		if n < 0 {
			t.Fatalf("no message: %x", message)
		}
		rest = rest[n:]
	}
}

// Things that happen to a relay in the fuzzed sequence, beside the requests 0–5.
const (
	stepCommit = 6 + iota
	stepGone
	stepTaken
	steps
)

// FuzzRelay runs any sequence of requests, commits and deaths through a relay.
func FuzzRelay(f *testing.F) {
	f.Add(byte(0), []byte{2, 1, 1, 3, 4, stepCommit, 3, 5, stepGone, stepTaken, 3})
	f.Add(byte(1), []byte{2, 4, 5, stepCommit, stepCommit, 4, stepGone})
	f.Add(byte(2), []byte{2, 1, stepGone, 1, 3, stepCommit, 4, 5})
	f.Add(byte(3), []byte{stepGone, stepTaken, 2, 0, 4, stepCommit})
	f.Fuzz(func(t *testing.T, switches byte, sequence []byte) {
		w := relayWatch{T: t, state: relayState{passTerminate: switches&1 != 0, answerAdmin: switches&2 != 0}}
		for i, b := range sequence {
			w.step(i, b)
		}
		w.end()
	})
}

// relayWatch knows what a relay was told and what may come of it.
type relayWatch struct {
	*testing.T
	state           relayState
	committed, gone bool
	asked, answered int  // requests that expect an answer, and our answers
	passed          int  // of those requests, to a living parent
	wanted, drains  int  // drain_listeners asked for, and passed
	half            bool // the beginning of an answer is out
}

func (w *relayWatch) step(i int, b byte) {
	var outs []relayOutput
	before := w.state
	in := relayInput{commit: b%steps == stepCommit, gone: b%steps == stepGone, taken: b%steps == stepTaken}
	kind := UnknownRequest
	if b%steps < stepCommit {
		kind = Request(b % steps)
		in.datagram = append(request(kind), byte(i)) // no two are the same
		if expectsAnswer(kind) {
			w.asked++
		}
		if kind == DrainListeners {
			w.wanted++
		}
	}
	w.state, outs = before.next(in)
	w.committed, w.gone = w.committed || in.commit, w.gone || in.gone
	if len(outs) > 1 && !in.commit { // it may pass an end that was withheld as well
		w.Fatalf("step %d: %d datagrams at once", i, len(outs))
	}
	for _, o := range outs {
		w.out(kind, in, o)
	}
	if w.gone && expectsAnswer(kind) && len(outs) == 0 {
		w.Errorf("step %d: %v of a dead parent has no answer", i, kind)
	}
	if expectsAnswer(kind) && len(outs) == 0 {
		w.Errorf("step %d: %v is swallowed, and the newcomer hangs", i, kind)
	}
}

func (w *relayWatch) out(kind Request, in relayInput, o relayOutput) {
	if o.pass == nil {
		w.answer(kind, in, o)
		return
	}
	passed := ParseRequest(o.pass)
	switch {
	case o.answer != UnknownRequest || o.part != whole:
		w.Errorf("passed and answered: %+v", o)
	case w.gone:
		w.Errorf("%v is passed to a dead parent", passed)
	case passed == DrainListeners && !w.committed:
		w.Error("drain_listeners is passed before the commit")
	case passed == Terminate && !(w.state.passTerminate && w.committed):
		w.Error("terminate is passed (rule 6)")
	case passed == ShutdownAdmin && w.state.answerAdmin:
		w.Error("shutdown_admin is passed, and the parent loses its admin")
	case in.datagram != nil && !bytes.Equal(o.pass, in.datagram):
		w.Errorf("%x is passed where %x came", o.pass, in.datagram)
	case in.datagram == nil && passed != DrainListeners && passed != Terminate:
		w.Errorf("%v is passed, unasked", passed)
	}
	if passed == DrainListeners {
		if w.drains++; w.drains > w.wanted {
			w.Errorf("drain_listeners asked for %d times and passed %d times", w.wanted, w.drains)
		}
	}
	if expectsAnswer(passed) {
		w.passed++
	}
}

func (w *relayWatch) answer(kind Request, in relayInput, o relayOutput) {
	if o.part == whole && !expectsAnswer(o.answer) && o.answer == kind {
		return // no answer at all: nothing is sent
	}
	if !w.gone && !(kind == ShutdownAdmin && w.state.answerAdmin) {
		w.Errorf("an answer in the place of a living parent: %+v", o)
	}
	if o.part == beginning {
		if w.half || !in.gone || w.passed == 0 {
			w.Errorf("an answer is begun for nobody: %+v", o)
		}
		w.half = true
		return
	}
	if (o.part == rest) != w.half {
		w.Errorf("half an answer: %+v, begun %t", o, w.half)
	}
	if kind != UnknownRequest && o.answer != kind {
		w.Errorf("%v is answered as %v", kind, o.answer)
	}
	w.half = false
	w.answered++
	if w.answered > w.asked {
		w.Errorf("%d answers to %d requests", w.answered, w.asked)
	}
}

func (w *relayWatch) end() {
	if w.committed && !w.gone && w.wanted > 0 && w.drains == 0 {
		w.Error("committed, and drain_listeners is still withheld")
	}
	if w.answered+w.passed < w.asked {
		w.Errorf("%d requests, %d answered, %d passed", w.asked, w.answered, w.passed)
	}
	if w.gone && !w.half && w.state.begun {
		w.Error("what was begun is finished, and still open")
	}
}
