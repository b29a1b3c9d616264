package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// step is how far an Envoy's start has come.
type step int

const (
	stepExec      step = iota
	stepAttached       // the segment's flag is set
	stepAdmin          // it asks for the parent's admin
	stepListening      // it asks for listening sockets
	stepInit           // it waits for its control plane
	stepLive           // the flag is cleared, it accepts
)

func (s step) String() string {
	return [...]string{"exec", "attached", "admin", "listening", "init", "LIVE"}[s]
}

// simEnvoy is one Envoy process: a main thread that does one thing at a time.
type simEnvoy struct {
	w     *world
	owner *simShell // whose child it is
	dice  *rand.Rand

	epoch, pid int
	boot       *bootstrap
	timer      time.Duration // --parent-shutdown-time-s, which runs from LIVE
	drainTime  time.Duration
	born       time.Duration
	awake      time.Duration // since it was last stopped, or hung in a request

	alive, stopped bool
	stuck          bool     // it answers a child that is dead
	waiting        []func() // whoever waits for its exit
	step           step
	parented       bool     // it has a parent and hasn't told it to end
	hasChild       bool     // a child has asked for its admin
	todo           []func() // for its main thread, which is stopped or blocked
	asking         *question
	unsent         func()          // what it was about to send when it was stopped
	answers        []envoy.Request // received and not read

	open      listeners
	admin     bool
	dynamic   bool // its control plane has answered with a listener
	connected bool
	draining  bool
	drainFrom time.Duration
	conns     []connection
}

// question is a request that blocks the main thread until its answer is there.
type question struct {
	request envoy.Request
	then    func()
	since   time.Duration
}

func (p *simEnvoy) name() string { return fmt.Sprintf("epoch %d", p.epoch) }

// deaf: its main thread answers nobody. Fact 16: a child of a stopped parent
// waits for ever and ignores SIGTERM; SIGCONT heals it.
func (p *simEnvoy) deaf() bool { return p.stopped || p.stuck || p.asking != nil }

// busy: its admin, which listens already, answers only once the main loop runs.
func (p *simEnvoy) busy() bool { return p.deaf() || p.step < stepInit }

// main gives the main thread something to do after a while.
func (p *simEnvoy) main(after time.Duration, do func()) {
	p.w.after(after, func() {
		if !p.alive {
			return
		}
		p.todo = append(p.todo, do)
		p.work()
	})
}

// work does what waits, in order.
func (p *simEnvoy) work() {
	for p.alive && !p.deaf() && len(p.todo) > 0 {
		do := p.todo[0]
		p.todo = p.todo[1:]
		do()
	}
}

// ask sends a request to the parent and blocks until it is answered.
func (p *simEnvoy) ask(r envoy.Request, then func()) {
	p.asking = &question{r, then, p.w.now}
	p.send(r, 1)
}

// say sends a request that has no answer.
func (p *simEnvoy) say(r envoy.Request) {
	p.asking = &question{request: r}
	p.send(r, 1)
}

// send tries ten times, a second apart, and then aborts.
// Fact 4: TestFact28ANewcomerOutlivesAParentThatDies, TestFaults.
func (p *simEnvoy) send(r envoy.Request, try int) {
	switch {
	case !p.alive:
	case p.stopped:
		p.unsent = func() { p.send(r, try) }
	case p.w.kernel.request(p, r):
		p.sent(try)
	case try > 10:
		p.die(byAbort, fmt.Sprintf("signal 6 (SIGABRT): its parent's name answers nobody (%s)", r))
	default:
		p.w.after(time.Second, func() { p.send(r, try+1) })
	}
}

// sent: only a request that has an answer goes on blocking.
func (p *simEnvoy) sent(try int) {
	if p.asking == nil || p.asking.then != nil {
		return
	}
	p.asking = nil
	if try > 1 {
		p.work()
	}
}

// hear queues an answer.
func (p *simEnvoy) hear(r envoy.Request) {
	p.answers = append(p.answers, r)
	p.read()
}

// read takes an answer. One of another kind counts as "no socket" where a
// socket was asked for; elsewhere Envoy asserts.
func (p *simEnvoy) read() {
	if p.asking == nil || p.asking.then == nil || p.stopped || len(p.answers) == 0 {
		return
	}
	q, a := p.asking, p.answers[0]
	p.answers = p.answers[1:]
	if a != q.request && q.request != envoy.PassListenSocket {
		p.die(byStray, fmt.Sprintf("signal 6 (SIGABRT): asked for %s it was answered %s", q.request, a))
		return
	}
	p.asking = nil
	if p.w.now-q.since > time.Second {
		p.awake = p.w.now
	}
	q.then()
	p.work()
}

// cause is why a process ended.
type cause int

const (
	byFault     cause = iota // somebody else's SIGKILL, a crash, no memory
	byItself                 // its own configuration made it end
	bySIGTERM                // the supervisor's
	bySIGKILL                // the supervisor's
	byTerminate              // its child's request
	byAbort                  // a request or an answer found nobody
	byStray                  // an answer was meant for another request
	byFlag                   // the segment still said "initializing"
)

func (p *simEnvoy) die(why cause, status string) {
	if !p.alive {
		return
	}
	p.w.tell(p.name(), "ends: %s", status)
	p.w.rules.died(p, why)
	p.alive, p.open, p.admin = false, 0, false
	p.owner.statuses[p.pid] = status
	p.w.kernel.reap(p)
}

// signal is kill(2) by the supervisor.
func (p *simEnvoy) signal(s syscall.Signal) {
	if !p.alive {
		return
	}
	switch s {
	case syscall.SIGKILL:
		p.die(bySIGKILL, "signal 9 (SIGKILL)")
	case syscall.SIGTERM:
		p.main(0, p.terminated)
	case syscall.SIGUSR1:
		// Fact 22: TestFact22EarlyLogReopenKillsNoNewcomer.
		if p.step < stepInit {
			p.die(bySIGKILL, "signal 10 (SIGUSR1)")
		}
	}
}

// terminated is an Envoy that got SIGTERM: it never drains (fact 11), and takes
// its parent along (fact 15) before it exits with 0.
// Fact 15: see proofs.
func (p *simEnvoy) terminated() {
	if p.parented {
		p.parented = false
		p.say(envoy.Terminate)
	}
	p.main(p.w.between(p.dice, time.Millisecond, 50*time.Millisecond), func() { p.die(bySIGTERM, "exit code 0") })
}

// stop and resume are SIGSTOP and SIGCONT.
func (p *simEnvoy) stop() { p.stopped = true }

func (p *simEnvoy) resume() {
	if p.stopped && p.alive {
		p.stopped, p.awake = false, p.w.now
		p.w.tell(p.name(), "goes on (SIGCONT)")
		if send := p.unsent; send != nil {
			p.unsent = nil
			send()
		}
		p.read()
		p.work()
	}
}
