package envoy

// RelayLogic is what a relay decides, without its sockets: the simulator of
// package hotrestart runs the decisions of the real one.
type RelayLogic struct{ state relayState }

// NewRelayLogic is the logic of a relay that has just been bound.
func NewRelayLogic(passTerminate bool) *RelayLogic {
	return &RelayLogic{relayState{passTerminate: passTerminate}}
}

// RelayDeed is one datagram that a relay sends: a request passed to the parent,
// an answer in its place, or the beginning of an answer, which only a newcomer
// that waits for one reads (see Taken). Exactly one of the three is set.
type RelayDeed struct {
	Pass, Answer Request
	Begin        bool
}

// Asked is a request of the newcomer.
func (l *RelayLogic) Asked(r Request) []RelayDeed {
	return l.next(relayInput{datagram: frame(0x0a, 2, byte(r)<<3|2, 0)})
}

// Commit and ParentGone are those of Relay.
func (l *RelayLogic) Commit() []RelayDeed     { return l.next(relayInput{commit: true}) }
func (l *RelayLogic) ParentGone() []RelayDeed { return l.next(relayInput{gone: true}) }

// Taken: the newcomer has read the beginning of an answer.
func (l *RelayLogic) Taken() []RelayDeed { return l.next(relayInput{taken: true}) }

func (l *RelayLogic) next(in relayInput) []RelayDeed {
	var outs []relayOutput
	l.state, outs = l.state.next(in)
	deeds := make([]RelayDeed, 0, len(outs))
	for _, o := range outs {
		switch {
		case o.pass != nil:
			deeds = append(deeds, RelayDeed{Pass: ParseRequest(o.pass)})
		case o.part == beginning:
			deeds = append(deeds, RelayDeed{Begin: true})
		default:
			deeds = append(deeds, RelayDeed{Answer: o.answer})
		}
	}
	return deeds
}
