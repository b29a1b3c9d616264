package envoy

// relayInput is one thing that happens to a relay.
type relayInput struct {
	request  []byte // of the newcomer
	answered bool   // the parent has answered
	gone     bool   // or never will: it is dead
	overdue  bool   // it has not answered for statsPatience
	commit   bool
	spare    bool // the newcomer's end is not the parent's
}

// relayOutput is one thing that a relay does; exactly one field is set.
type relayOutput struct {
	ask     []byte  // a request for the parent that has an answer
	say     []byte  // one that has none
	deliver bool    // the parent's answer goes to the newcomer
	answer  Request // an answer of ours, in the parent's place
}

// relayState is all that a relay remembers.
type relayState struct {
	passTerminate bool
	answerAdmin   bool
	committed     bool
	gone          bool
	held          []byte  // a drain_listeners that waits for the commit
	ended         []byte  // a terminate that waits for it
	waits         Request // what the newcomer waits for the parent to answer
	asked         bool    // the parent has a question; perhaps nobody waits any more
	queued        []byte  // what it is asked next
}

// next decides; serve acts.
func (s relayState) next(in relayInput) (relayState, []relayOutput) {
	switch {
	case in.gone:
		return s.parentGone()
	case in.commit:
		return s.commit()
	case in.spare:
		s.passTerminate, s.ended = false, nil
		return s, nil
	case in.answered:
		return s.answered()
	case in.overdue:
		return s.overdue()
	}
	return s.request(in.request, ParseRequest(in.request))
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
	case !expectsAnswer(kind) && s.gone:
		return s, nil
	case !expectsAnswer(kind):
		return s, []relayOutput{{say: d}}
	case s.gone, kind == ShutdownAdmin && s.answerAdmin, kind == StatsRequest && s.asked:
		return s, []relayOutput{{answer: kind}}
	}
	s.waits = kind
	if s.asked {
		s.queued = d
		return s, nil
	}
	s.asked = true
	return s, []relayOutput{{ask: d}}
}

func (s relayState) commit() (relayState, []relayOutput) {
	var outs []relayOutput
	for _, d := range [][]byte{s.held, s.ended} {
		if d != nil && !s.gone {
			outs = append(outs, relayOutput{say: d})
		}
	}
	s.committed, s.held, s.ended = true, nil, nil
	return s, outs
}

func (s relayState) answered() (relayState, []relayOutput) {
	if d := s.queued; d != nil { // the answer is late: nobody waits for it
		s.queued = nil
		return s, []relayOutput{{ask: d}}
	}
	s.asked = false
	if s.waits == UnknownRequest {
		return s, nil
	}
	s.waits = UnknownRequest
	return s, []relayOutput{{deliver: true}}
}

// parentGone: a newcomer whose request nobody answers hangs in it for ever (fact 28).
func (s relayState) parentGone() (relayState, []relayOutput) {
	s.gone, s.asked, s.queued = true, false, nil
	return s.answerMyself()
}

// overdue: a newcomer waits for stats with its main thread, admin included, as
// long as it takes; a stopped parent must not stop the epoch that serves. A
// question of its start is not answered for a living parent: the sockets and the
// start time are the parent's to give.
func (s relayState) overdue() (relayState, []relayOutput) {
	if s.waits != StatsRequest {
		return s, nil
	}
	return s.answerMyself()
}

func (s relayState) answerMyself() (relayState, []relayOutput) {
	kind := s.waits
	if kind == UnknownRequest {
		return s, nil
	}
	s.waits = UnknownRequest
	return s, []relayOutput{{answer: kind}}
}

func expectsAnswer(r Request) bool {
	return r == PassListenSocket || r == ShutdownAdmin || r == StatsRequest
}
