package hotrestart

import (
	"encoding/json"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// This file is `proxyctl upgrade`, as in replace.go and inherit.go: the state goes
// through memory to another program, and the clock may have been set since ours
// began.

func (s *simShell) replace() {
	s.ours(s.w.between(s.rng, time.Millisecond, 300*time.Millisecond), func() {
		u := s.state.Upgrade
		switch {
		case u == nil: // the wait for it is over
		case !u.Going, s.asks(), s.rng.IntN(4) == 0:
			s.step(UpgradeOver{From: "1", To: "2", Error: "not now"})
		default:
			s.execute()
		}
	})
}

// asks tells whether an Envoy waits for an answer, or is waited for.
func (s *simShell) asks() bool {
	for _, c := range s.children {
		if c.relay != nil && (len(c.relay.inbox) > 0 || c.relay.logic.Waits() != envoy.UnknownRequest) {
			return true
		}
		for _, p := range []*simParent{c.asParent, c.ofParent} {
			if p != nil && len(p.queue) > 0 {
				return true
			}
		}
	}
	return false
}

// execute is exec. What would have happened meanwhile happens after it.
func (s *simShell) execute() {
	was := s.clock(s.w.now)
	data, err := json.Marshal(s.state)
	var state State
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	if err != nil {
		s.w.rules.broke("the state survives an upgrade", "%v", err)
		return
	}
	s.wall = s.w.wall
	if !s.w.oldClock {
		rebase(&state, was, s.clock(s.w.now))
	}
	state.Limits = s.state.Limits
	s.state = state
	s.step(TookOver{From: "1", To: "2"})
	s.lookouts++
	pause := s.w.between(s.rng, 20*time.Millisecond, 150*time.Millisecond)
	s.pausedUntil = max(s.pausedUntil, s.w.now+pause)
	s.excused += pause
	s.ours(0, func() {
		if g := s.state.ours(); g != nil {
			s.lookout(g.Epoch)
		}
	})
}
