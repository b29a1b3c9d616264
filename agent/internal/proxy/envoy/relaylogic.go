package envoy

// RelayLogic is what a relay decides, without its sockets: the simulator of
// package hotrestart runs the decisions of the real one.
type RelayLogic struct{ state relayState }

// NewRelayLogic is the logic of a relay that has just been bound.
func NewRelayLogic(passTerminate, answerAdmin bool) *RelayLogic {
	return &RelayLogic{relayState{passTerminate: passTerminate, answerAdmin: answerAdmin}}
}

// RelayDeed is one thing that a relay does: it asks the parent, or tells it what
// needs no answer, it delivers the parent's answer, or answers in its place.
// Exactly one of the four is set.
type RelayDeed struct {
	Ask, Say, Answer Request
	Deliver          bool
}

// Waits is the request that the newcomer waits for the parent to answer. Until
// then a relay takes no other.
func (l *RelayLogic) Waits() Request { return l.state.waits }

// StatsPatience is how many seconds a relay waits for a parent's stats.
const StatsPatience = statsPatience

// Asked is a request of the newcomer.
func (l *RelayLogic) Asked(r Request) []RelayDeed {
	return l.next(relayInput{request: frame(0x0a, 2, byte(r)<<3|2, 0)})
}

// Answered, Gone, Overdue, Commit and Spare are what else may happen to a relay: the
// parent answers its question, or it is dead, or silent for StatsPatience.
func (l *RelayLogic) Answered() []RelayDeed { return l.next(relayInput{answered: true}) }
func (l *RelayLogic) Gone() []RelayDeed     { return l.next(relayInput{gone: true}) }
func (l *RelayLogic) Overdue() []RelayDeed  { return l.next(relayInput{overdue: true}) }
func (l *RelayLogic) Commit() []RelayDeed   { return l.next(relayInput{commit: true}) }
func (l *RelayLogic) Spare() []RelayDeed    { return l.next(relayInput{spare: true}) }

func (l *RelayLogic) next(in relayInput) []RelayDeed {
	var outs []relayOutput
	l.state, outs = l.state.next(in)
	deeds := make([]RelayDeed, 0, len(outs))
	for _, o := range outs {
		deeds = append(deeds, RelayDeed{
			Ask: ParseRequest(o.ask), Say: ParseRequest(o.say), Answer: o.answer, Deliver: o.deliver,
		})
	}
	return deeds
}
