package envoy

// relayInput is one thing that happens to a relay.
type relayInput struct {
	datagram []byte
	commit   bool
	gone     bool
}

// relayOutput is a datagram for the parent, or an answer for the newcomer.
type relayOutput struct {
	pass   []byte
	answer Request
}

// relayState is all that a relay remembers.
type relayState struct {
	passTerminate bool
	answerAdmin   bool
	committed     bool
	gone          bool
	held          []byte  // a drain_listeners that waits for the commit
	last          Request // the newest request that was passed and expects an answer
}

// next decides; serve acts.
func (s relayState) next(in relayInput) (relayState, []relayOutput) {
	switch {
	case in.gone:
		return s.parentGone()
	case in.commit:
		return s.commit()
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
	case kind == ShutdownAdmin && s.answerAdmin, s.gone:
		return s, []relayOutput{{answer: kind}}
	}
	if expectsAnswer(kind) {
		s.last = kind
	}
	return s, []relayOutput{{pass: d}}
}

func (s relayState) commit() (relayState, []relayOutput) {
	held := s.held
	s.committed, s.held = true, nil
	if held == nil || s.gone {
		return s, nil
	}
	return s, []relayOutput{{pass: held}}
}

// parentGone answers the newest request once more: the newcomer hangs for ever
// in a request whose parent died before it answered (fact 28).
func (s relayState) parentGone() (relayState, []relayOutput) {
	if s.gone {
		return s, nil
	}
	s.gone = true
	if s.last == UnknownRequest {
		return s, nil
	}
	return s, []relayOutput{{answer: s.last}}
}

func expectsAnswer(r Request) bool {
	return r == PassListenSocket || r == ShutdownAdmin || r == StatsRequest
}
