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
	stepAnswered
	stepOverdue
	steps
)

// FuzzRelay runs any sequence of requests, answers, commits and deaths through a
// relay.
func FuzzRelay(f *testing.F) {
	f.Add(byte(0), []byte{2, stepAnswered, 1, stepAnswered, 3, stepAnswered, 4, 5, stepCommit, 3, stepGone, 3})
	f.Add(byte(1), []byte{2, stepAnswered, 4, 5, stepCommit, stepCommit, 4, stepGone, 3})
	f.Add(byte(2), []byte{2, 1, stepGone, 1, 3, stepCommit, 4, 5})
	f.Add(byte(3), []byte{stepGone, 2, 0, 4, stepCommit})
	f.Add(byte(0), []byte{3, stepOverdue, 3, 1, stepAnswered, stepAnswered, 3, stepOverdue, 2, stepGone})
	f.Fuzz(func(t *testing.T, switches byte, sequence []byte) {
		w := relayWatch{T: t, state: relayState{passTerminate: switches&1 != 0, answerAdmin: switches&2 != 0}}
		for i, b := range sequence {
			w.step(byte(i), b%steps)
		}
	})
}

// relayWatch is the newcomer, which waits for each answer, and the parent, which
// answers one thing at a time.
type relayWatch struct {
	*testing.T
	state           relayState
	committed, gone bool
	waits           []byte // what the newcomer waits for
	question        []byte // what the parent was asked
	wanted, drains  int    // drain_listeners asked for, and passed
}

// step does one thing, if it can happen.
func (w *relayWatch) step(i, b byte) {
	in := relayInput{commit: b == stepCommit, gone: b == stepGone, answered: b == stepAnswered, overdue: b == stepOverdue}
	switch {
	case in.answered && w.question == nil, b < stepCommit && w.waits != nil:
		return
	case b < stepCommit:
		in.request = append(request(Request(b)), i) // no two are the same
		if expectsAnswer(Request(b)) {
			w.waits = in.request
		}
		if Request(b) == DrainListeners {
			w.wanted++
		}
	}
	answered := w.question
	if in.answered || in.gone {
		w.question = nil
	}
	w.committed, w.gone = w.committed || in.commit, w.gone || in.gone
	var outs []relayOutput
	w.state, outs = w.state.next(in)
	for _, o := range outs {
		w.out(in, answered, o)
	}
	if w.waits != nil && (w.gone || w.question == nil) {
		w.Fatalf("step %d: the newcomer hangs in %v", i, ParseRequest(w.waits))
	}
	if w.state.waits != ParseRequest(w.waits) {
		w.Fatalf("step %d: the newcomer waits for %v, not for %v", i, ParseRequest(w.waits), w.state.waits)
	}
	if w.committed && !w.gone && w.wanted > 0 && w.drains == 0 || w.drains > w.wanted {
		w.Fatalf("step %d: committed %t, drain_listeners asked for %d times and passed %d times", i, w.committed, w.wanted, w.drains)
	}
}

func (w *relayWatch) out(in relayInput, answered []byte, o relayOutput) {
	switch {
	case o.ask != nil:
		w.asks(o.ask)
	case o.say != nil:
		w.says(ParseRequest(o.say))
	case o.deliver:
		if answered == nil || !bytes.Equal(answered, w.waits) {
			w.Errorf("the answer to %x is delivered for %x", answered, w.waits)
		}
		w.waits = nil
	default:
		kind := ParseRequest(w.waits)
		ours := w.gone || kind == ShutdownAdmin && w.state.answerAdmin || kind == StatsRequest && (in.overdue || w.question != nil)
		if o.answer != kind || kind == UnknownRequest || !ours {
			w.Errorf("%v is answered in the parent's place, which is gone: %t; the newcomer waits for %v", o.answer, w.gone, kind)
		}
		w.waits = nil
	}
}

func (w *relayWatch) asks(d []byte) {
	switch {
	case w.gone:
		w.Errorf("a dead parent is asked %x", d)
	case w.question != nil:
		w.Errorf("the parent is asked %x, and has still to answer %x", d, w.question)
	case !bytes.Equal(d, w.waits):
		w.Errorf("the parent is asked %x, the newcomer has asked %x", d, w.waits)
	case ParseRequest(d) == ShutdownAdmin && w.state.answerAdmin:
		w.Error("shutdown_admin is passed, and the parent loses its admin")
	}
	w.question = d
}

func (w *relayWatch) says(r Request) {
	switch {
	case w.gone:
		w.Errorf("a dead parent is told %v", r)
	case r == DrainListeners && !w.committed:
		w.Error("drain_listeners is passed before the commit")
	case r == Terminate && !(w.state.passTerminate && w.committed):
		w.Error("terminate is passed (rule 6)")
	}
	if r == DrainListeners {
		w.drains++
	}
}

// FuzzStatsOfAParent reads what a parent may answer.
func FuzzStatsOfAParent(f *testing.F) {
	f.Add(statsReply(entry(gaugesField, "a", numberField(mapValue, 3)), entry(dynamicsField, "a", bytesField(mapValue, []byte{1}))))
	f.Add(answerFor(ShutdownAdmin, time.Unix(1, 0))[frameHeader:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, reply []byte) {
		answer := gaugesAtZero(reply)
		if answer == nil {
			return
		}
		checkAnswer(t, StatsRequest, answer)
		if len(answer) > 3*len(reply)+100 {
			t.Errorf("%d bytes of %d", len(answer), len(reply))
		}
		if gaugesAtZero(answer[frameHeader:]) != nil {
			t.Errorf("not all are at zero: % x", answer)
		}
	})
}
