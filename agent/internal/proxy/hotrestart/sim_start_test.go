package hotrestart

import (
	"fmt"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// This file is Envoy's hot restart: a start from exec to LIVE, and what it asks
// of its parent on the way (facts 2, 6–8, 20).

// attach opens the shared segment. Epoch 0 makes it anew.
func (p *simEnvoy) attach() {
	s := &p.w.kernel.segment
	switch {
	case p.epoch == 0:
		s.exists, s.flag = true, false
	case !s.exists:
		p.die(byAbort, "signal 6 (SIGABRT): no shared segment")
		return
	case s.flag:
		p.die(byFlag, "exit code 1: previous envoy process is still initializing")
		return
	}
	s.flag = true
	if l := p.w.kernel.links[p.epoch%envoy.Seats]; l != nil && p.epoch > 0 {
		p.parented, l.bound = true, true
	}
	p.reach(stepAttached)
	p.main(p.soon(), p.takeAdmin)
}

// soon is a step of a small start (fact 8: 40 to 170 ms in all).
func (p *simEnvoy) soon() time.Duration {
	return p.w.between(p.dice, time.Millisecond, 15*time.Millisecond)
}

// reach notes how far it has come, for those who wait to strike there.
func (p *simEnvoy) reach(s step) {
	p.step = s
	if s == stepLive {
		p.w.tell(p.name(), "is LIVE with listeners %03b", p.open)
	}
	p.w.user.reached(p, s)
}

// takeAdmin has the parent close its admin: from here on nobody answers at a
// shared address until this one does.
func (p *simEnvoy) takeAdmin() {
	p.reach(stepAdmin)
	if !p.alive {
		return
	}
	if !p.parented {
		p.listen()
		return
	}
	p.ask(envoy.ShutdownAdmin, p.listen)
}

func (p *simEnvoy) listen() {
	p.admin = true
	p.reach(stepListening)
	p.takeSocket(staticListeners.count())
}

// takeSocket asks for one listening socket after the other; without one it
// binds its own. Fact 5: a busy port is found here and not by validation
// (TestFact5ValidateSeesTheFileAndNothingElse).
func (p *simEnvoy) takeSocket(left int) {
	next := func() { p.main(p.soon(), func() { p.takeSocket(left - 1) }) }
	switch {
	case !p.alive:
	case p.boot.flaw == flawBusyPort && left == 1:
		p.die(byItself, "exit code 1: cannot bind: Address in use")
	case left == 0:
		p.main(p.boot.slow, p.initialize)
	case p.parented:
		p.ask(envoy.PassListenSocket, next)
	default:
		next()
	}
}

// initialize waits for the control plane, if there is one.
// Fact 20: TestRule2AndFact20NothingIsCommittedThatIsNotConfigured.
func (p *simEnvoy) initialize() {
	if p.boot.flaw == flawDies {
		p.die(byItself, "exit code 1: no such certificate")
		return
	}
	p.reach(stepInit)
	p.flushEvery()
	switch {
	case !p.boot.dynamic:
		p.main(p.soon(), p.starts)
		return
	case p.boot.fetch > 0:
		p.main(p.boot.fetch, p.starts)
	}
	p.fetch()
}

// fetch asks the control plane, now and whenever its mood changes. A rejected
// update counts as an answer: LIVE with no listener.
func (p *simEnvoy) fetch() {
	if !p.alive || !p.boot.dynamic || p.step < stepInit {
		return
	}
	mood := p.w.plane.mood
	p.connected = mood != planeSilent
	if mood == planeSilent {
		return
	}
	p.main(p.w.between(p.dice, 50*time.Millisecond, 400*time.Millisecond), func() {
		if mood == planeGood {
			p.dynamic = true
			if p.step == stepLive && !p.draining {
				p.open |= dynamicListener
			}
		}
		p.starts()
	})
}

// starts its workers: the start is over, whatever it has. The parent's stats are
// merged once more before.
func (p *simEnvoy) starts() {
	switch {
	case !p.alive || p.step == stepLive:
	case p.parented:
		p.ask(envoy.StatsRequest, p.live)
	default:
		p.live()
	}
}

// live clears the flag, accepts, and tells the parent to drain.
func (p *simEnvoy) live() {
	if p.step == stepLive {
		return
	}
	p.w.kernel.segment.flag = false
	p.open = staticListeners
	if p.dynamic {
		p.open |= dynamicListener
	}
	p.reach(stepLive)
	if p.boot.flaw == flawCrashes {
		p.w.after(3*time.Second, func() { p.die(byItself, "signal 11 (SIGSEGV)") })
	}
	if p.parented && p.alive {
		p.say(envoy.DrainListeners)
		p.main(p.timer, p.endParent)
	}
}

// endParent is Envoy's own timer.
// Fact 8: TestRule6PlainModeEndsParentsByEnvoysTimerOnly.
func (p *simEnvoy) endParent() {
	if p.parented {
		p.parented = false
		p.say(envoy.Terminate)
	}
}

// flushEvery merges the parent's stats at each flush, also while it still
// initialises. Fact 4: this is where a missing parent is noticed.
func (p *simEnvoy) flushEvery() {
	p.main(5*time.Second, func() {
		if p.parented && !p.hasChild {
			p.ask(envoy.StatsRequest, p.flushEvery)
		}
	})
}

// asked is a request that has reached the parent's queue.
func (p *simEnvoy) asked(r envoy.Request) {
	most := 2 * time.Millisecond
	if p.dice.IntN(30) == 0 {
		most = 500 * time.Millisecond // it merges stats (fact 25)
	}
	p.main(p.w.between(p.dice, 100*time.Microsecond, most), func() { p.serve(r) })
}

// serve is the parent's side of the protocol.
func (p *simEnvoy) serve(r envoy.Request) {
	switch r {
	case envoy.ShutdownAdmin:
		p.admin, p.hasChild = false, true
		p.endParent() // it also ends its own parent, and flushes no more
		p.answer(r, 20*time.Microsecond)
	case envoy.PassListenSocket:
		p.answer(r, 20*time.Microsecond)
	case envoy.StatsRequest:
		p.answer(r, time.Duration(1+p.dice.IntN(50))*time.Millisecond) // fact 25
	case envoy.DrainListeners:
		p.w.tell(p.name(), "is told to drain")
		p.open = 0
		p.drain()
	case envoy.Terminate:
		p.die(byTerminate, "exit code 0: its child told it to end")
	}
}

// answer replies to the child. Where nobody is behind the child's name it tries
// ten times, a second apart, and where the name is gone not even that: then it
// aborts, with all its connections.
func (p *simEnvoy) answer(r envoy.Request, took time.Duration) {
	p.stuck = true
	p.w.after(took, func() { p.reply(r, 1) })
}

func (p *simEnvoy) reply(r envoy.Request, try int) {
	if p.stopped { // between a request and its answer
		p.unsent = func() { p.reply(r, try) }
		return
	}
	p.stuck = false
	to := p.w.kernel.answer(p.epoch, r)
	switch {
	case to == delivered || !p.alive:
		p.work()
	case to == nameless || try > 10:
		p.die(byAbort, fmt.Sprintf("signal 6 (SIGABRT): its answer to %s finds no child", r))
	default:
		p.stuck = true
		p.w.after(time.Second, func() { p.reply(r, try+1) })
	}
}

// drain has clients told to go, on one of their answers, more and more of them
// over the drain time. Facts 11 and 14: TestFact11HowEachFormOfDrainBehaves.
func (p *simEnvoy) drain() {
	if !p.draining {
		p.draining, p.drainFrom = true, p.w.now
	}
}
