package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simRelay is a relay's sockets around the logic of the real one. It lives in
// the supervisor's process: while that is stopped, requests queue.
// Fact 28: TestRule2AndFact28BothEpochsAnswerWhileTheCommitIsWithheld.
type simRelay struct {
	s         *simShell // whose it is
	logic     *envoy.RelayLogic
	parent    *simParent
	child     *simChild
	inbox     []envoy.Request
	asked     int // questions, to tell one's patience from another's
	seen      func(envoy.Request)
	committed bool
	closed    bool
}

// hop is what a relay costs a request (fact 28).
const hop = 45 * time.Microsecond

func (r *simRelay) receive(q envoy.Request) {
	r.s.ours(hop, func() {
		r.inbox = append(r.inbox, q)
		r.pump()
	})
}

// pump takes requests while the newcomer waits for no answer.
func (r *simRelay) pump() {
	for !r.closed && len(r.inbox) > 0 && r.logic.Waits() == envoy.UnknownRequest {
		q := r.inbox[0]
		r.inbox = r.inbox[1:]
		r.seen(q)
		r.do(q, r.logic.Asked(q))
		if r.logic.Waits() == envoy.StatsRequest {
			r.await()
		}
	}
}

// await is the patience for a parent's stats.
func (r *simRelay) await() {
	r.asked++
	asked := r.asked
	r.s.ownTime(envoy.StatsPatience*time.Second, func() {
		if asked == r.asked && !r.closed && r.logic.Waits() == envoy.StatsRequest {
			r.do(envoy.UnknownRequest, r.logic.Overdue())
			r.pump()
		}
	})
}

func (r *simRelay) commit() {
	r.committed = true
	r.do(envoy.UnknownRequest, r.logic.Commit())
}

// do carries deeds out; of is the request that a delivered answer belongs to.
func (r *simRelay) do(of envoy.Request, deeds []envoy.RelayDeed) {
	for _, d := range deeds {
		switch {
		case d.Ask != envoy.UnknownRequest:
			r.ask(d.Ask)
		case d.Say != envoy.UnknownRequest:
			r.parent.say(d.Say)
		case d.Deliver:
			r.answer(of)
		default:
			r.answer(d.Answer)
		}
	}
}

func (r *simRelay) ask(q envoy.Request) {
	r.parent.ask(&simQuestion{q, func(ok bool) {
		if ok {
			r.do(q, r.logic.Answered())
		} else {
			r.do(q, r.logic.Gone())
		}
		r.pump()
	}, func() bool { return r.closed }})
}

func (r *simRelay) answer(a envoy.Request) {
	if p := r.child.proc; p != nil && p.alive {
		p.hear(a)
	}
}
