package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simRelay is a relay's sockets around the logic of the real one. It lives in
// the supervisor's process: while that is stopped, requests queue.
// Fact 28: TestRelay… in test/real and envoy/relay_test.go.
type simRelay struct {
	w             *world
	logic         *envoy.RelayLogic
	parent, child int
	seen          func(envoy.Request)
	committed     bool
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
			if !r.w.kernel.toParent(r.parent, d.Pass) {
				r.parentGone()
			}
		case d.Begin: // read by one that waits for an answer, and by no other
			if p := r.w.kernel.at(r.child); p != nil && p.asking != nil {
				r.do(r.logic.Taken())
			}
		case d.Answer == envoy.ShutdownAdmin, d.Answer == envoy.PassListenSocket, d.Answer == envoy.StatsRequest:
			if p := r.w.kernel.at(r.child); p != nil && p.asking != nil { // TEMP
				p.hear(d.Answer)
			}
		}
	}
}
