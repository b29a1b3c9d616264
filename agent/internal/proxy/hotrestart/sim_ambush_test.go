package hotrestart

import (
	"slices"
	"time"
)

// ambush strikes when a newcomer comes to a step.
type ambush struct {
	step   step
	victim byte
	after  time.Duration
	freeze bool
}

// stepCommitted is the moment of the commit, for ambushes.
const stepCommitted = stepLive + 1

// victim is a living Envoy: of the newcomer's, the serving's or a parent's kind.
func (u *user) victim(arg byte) *simEnvoy {
	var match func(*Generation) bool
	switch arg % 4 {
	case 0, 3:
		match = func(g *Generation) bool { return g.uncommitted() || g.Phase == Removing }
	case 1:
		match = func(g *Generation) bool { return g.Phase == Serving }
	case 2:
		match = func(g *Generation) bool { return g.Phase == Draining || g.Phase == Ending }
	}
	for _, s := range slices.Backward(u.w.living()) {
		if g := s.state.where(match); g != nil {
			if c := s.children[g.Epoch]; c != nil && !c.foreign && c.proc != nil && c.proc.alive {
				return c.proc
			}
		}
	}
	return nil
}

func (u *user) strike(p *simEnvoy, how string) {
	if p != nil {
		p.die(byFault, how)
	}
}

func (u *user) freeze(p *simEnvoy, d time.Duration) {
	if p == nil || p.stopped {
		return
	}
	u.w.tell("fault", "SIGSTOP to %s, for %s", p.name(), d)
	u.w.rules.faults++
	p.stop()
	u.w.after(d, p.resume)
}

func (u *user) lieInWait(arg byte) {
	a := ambush{
		step: 1 + step(arg%6), victim: arg / 6 % 4, freeze: arg >= 200,
		after: []time.Duration{0, time.Millisecond, 20 * time.Millisecond}[arg/24%3],
	}
	u.ambushes = append(u.ambushes, a)
}

// reached: a newcomer has come to a step.
func (u *user) reached(p *simEnvoy, s step) {
	i := slices.IndexFunc(u.ambushes, func(a ambush) bool { return a.step == s })
	if p.epoch == 0 || i < 0 {
		return
	}
	a := u.ambushes[i]
	u.ambushes = slices.Delete(u.ambushes, i, i+1)
	act := func() {
		if v := u.victim(a.victim); a.freeze {
			u.freeze(v, 20*time.Second)
		} else {
			u.strike(v, "signal 9 (SIGKILL), by somebody else")
		}
	}
	if a.after == 0 {
		act()
		return
	}
	u.w.after(a.after, act)
}
