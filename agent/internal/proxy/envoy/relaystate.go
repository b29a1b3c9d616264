package envoy

// relayInput is one thing that happens to a relay.
type relayInput struct {
	datagram []byte
	commit   bool
	gone     bool
	taken    bool // the newcomer has read the beginning of an answer
}

// relayOutput is a datagram for the parent, or an answer for the newcomer.
type relayOutput struct {
	pass   []byte
	answer Request
	part   part
}

// part of an answer: what was begun is finished when it is known for which
// request.
type part int

const (
	whole part = iota
	beginning
	rest
)

// relayState is all that a relay remembers.
type relayState struct {
	passTerminate bool
	answerAdmin   bool
	committed     bool
	gone          bool
	held          []byte  // a drain_listeners that waits for the commit
	ended         []byte  // a terminate that waits for it
	last          Request // the newest request that was passed and expects an answer
	begun         bool    // the beginning of an answer is out
}

// next decides; serve acts.
func (s relayState) next(in relayInput) (relayState, []relayOutput) {
	switch {
	case in.gone:
		return s.parentGone()
	case in.commit:
		return s.commit()
	case in.taken:
		return s.taken()
	}
	return s.request(in.datagram, ParseRequest(in.datagram))
}

func (s relayState) request(d []byte, kind Request) (relayState, []relayOutput) {
	switch {
	case kind == DrainListeners && !s.committed:
		// Until the newcomer is verified both epochs accept on the same sockets.
		s.held = d
		return s, nil
	case kind == Terminate && !s.passTerminate:
		// A parent's end is ours: Envoy's timer would cut its streams (rule 6).
		return s, nil
	case kind == Terminate && !s.committed:
		// The timer runs from LIVE, and goes on while a newcomer is taken back and
		// its connections are waited for (rule 7): it would end who serves. If the
		// commit comes after all, nobody else ends this parent.
		s.ended = d
		return s, nil
	case s.begun && expectsAnswer(kind): // so the one before it was answered
		s.begun = false
		return s, []relayOutput{{answer: kind, part: rest}}
	case kind == ShutdownAdmin && s.answerAdmin, s.gone:
		return s, []relayOutput{{answer: kind}}
	}
	if expectsAnswer(kind) {
		s.last = kind
	}
	return s, []relayOutput{{pass: d}}
}

func (s relayState) commit() (relayState, []relayOutput) {
	var outs []relayOutput
	for _, d := range [][]byte{s.held, s.ended} {
		if d != nil && !s.gone {
			outs = append(outs, relayOutput{pass: d})
		}
	}
	s.committed, s.held, s.ended = true, nil, nil
	return s, outs
}

// parentGone begins an answer. The newest request may be outstanding, and then
// the newcomer would hang in it for ever (fact 28); or it was answered, and then
// one more answer would be read for that of the next request, of another kind,
// and Envoy aborts ("did not respond as expected"). The parent's answers don't
// pass here, so nobody knows. Only somebody who waits reads the beginning.
func (s relayState) parentGone() (relayState, []relayOutput) {
	if s.gone {
		return s, nil
	}
	s.gone = true
	if s.last == UnknownRequest {
		return s, nil
	}
	s.begun = true
	return s, []relayOutput{{part: beginning}}
}

// taken: the newcomer waits for the answer to its newest request.
func (s relayState) taken() (relayState, []relayOutput) {
	if !s.begun {
		return s, nil
	}
	s.begun = false
	return s, []relayOutput{{answer: s.last, part: rest}}
}

func expectsAnswer(r Request) bool {
	return r == PassListenSocket || r == ShutdownAdmin || r == StatsRequest
}
