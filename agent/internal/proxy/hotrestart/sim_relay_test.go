package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simRelay is a relay's sockets around the logic of the real one. It lives in
// the supervisor's process: while that is stopped, requests queue.
// Fact 28: TestRule2AndFact28BothEpochsAnswerWhileTheCommitIsWithheld.
type simRelay struct {
	w             *world
	logic         *envoy.RelayLogic
	parent, child int
	seen          func(envoy.Request)
	committed     bool
	begun         bool          // an answer of which it doesn't know what for
	unread        int           // what the parent has still to read
	passed        time.Duration // when the newest was passed
	closed        bool
}

// hop is what a relay costs a request (fact 28).
const hop = 45 * time.Microsecond

func (r *simRelay) receive(q envoy.Request) {
	r.w.ours(hop, func() {
		if r.closed {
			return
		}
		r.seen(q)
		r.do(r.logic.Asked(q))
	})
}

func (r *simRelay) commit() {
	r.committed = true
	r.do(r.logic.Commit())
}

func (r *simRelay) parentGone() { r.do(r.logic.ParentGone()) }

func (r *simRelay) do(deeds []envoy.RelayDeed) {
	for _, d := range deeds {
		switch {
		case d.Pass != envoy.UnknownRequest:
			r.unread, r.passed = r.unread+1, r.w.now
			if !r.w.kernel.toParent(r.parent, d.Pass, func() { r.unread-- }) {
				r.unread--
				r.parentGone()
			}
		case d.Begin:
			r.begun = true
			r.answer(answerBegun)
			r.look(2 * time.Millisecond)
		case d.Answer == envoy.ShutdownAdmin, d.Answer == envoy.PassListenSocket, d.Answer == envoy.StatsRequest:
			r.begun = false
			r.answer(d.Answer)
		}
	}
}

func (r *simRelay) answer(a envoy.Request) {
	if p := r.w.kernel.at(r.child); p != nil && p.epoch == r.child {
		p.hear(a)
	}
}

// look finds out whether the newcomer has read the beginning of an answer: then
// it waits for the rest.
func (r *simRelay) look(pause time.Duration) {
	r.w.ours(pause, func() {
		p := r.w.kernel.at(r.child)
		switch {
		case !r.begun || r.closed || p == nil:
		case len(p.answers) == 0:
			r.w.ours(hop, func() { r.do(r.logic.Taken()) }) // after what it has asked by now
		default:
			r.look(min(2*pause, time.Second))
		}
	})
}
