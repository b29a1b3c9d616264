package hotrestart

import (
	"math/bits"
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// kernel keeps what processes share: names, seats, the segment, addresses.
type kernel struct {
	w     *world
	pids  int
	procs []*simEnvoy // living, oldest first
	links [envoy.Seats]*link
	names [envoy.Seats]*names // nil: the seat's directory is not there

	// segment is Envoy's shared memory; its flag says "initializing".
	// Fact 2: TestFact2ANewcomerKilledInInitBlocksTheSegmentUntilRepaired.
	segment struct{ exists, flag bool }
	foreign [envoy.Seats]bool      // a seat that a stranger holds
	holder  [envoy.Seats]*simShell // who prepares a seat
	beat    *coordination.Heartbeat
}

// link is the pair of names between the epoch of one seat and its parent. The
// requests go to a relay, or in plain mode to the parent's own socket, and then
// the answers to the child's own.
type link struct {
	parent int
	relay  *simRelay
	bound  bool // the child has bound its name
}

// names are where an epoch's answers to its child go, under its own path.
type names struct {
	own   *simParent // its supervisor's
	taken *simParent // another supervisor's, in its place
	timed bool       // and that one leaves the epoch's end to Envoy's timer
	plain bool       // straight to the child
	links int        // how often they were linked

	committed bool // what the seat says of the epoch
}

// link makes them go to our own end again, to another supervisor's, or straight.
func (n *names) link(to *simParent, timed, plain bool) {
	n.taken, n.timed, n.plain = to, timed, plain
	n.links++
}

// reached tells whether somebody is behind the name.
func (n *names) reached() bool {
	return n != nil && !n.plain && n.end().alive()
}

func (n *names) end() *simParent {
	if n.taken != nil {
		return n.taken
	}
	return n.own
}

// listeners is a set of ports, a bit each.
type listeners uint8

const (
	staticListeners listeners = 0b011
	dynamicListener listeners = 0b100
)

func (l listeners) count() int { return bits.OnesCount8(uint8(l)) }

// at is who lives in a seat. Epochs that are equal mod 3 have the same names.
// Fact 7: TestRule6ThreeGenerationsAndAFourthThatWaits.
func (k *kernel) at(epoch int) *simEnvoy {
	for _, p := range k.procs {
		if p.epoch%envoy.Seats == epoch%envoy.Seats {
			return p
		}
	}
	return nil
}

// request is a datagram of a child to its parent's name; false: nobody is
// bound there. An epoch makes its parent's name from its own number.
func (k *kernel) request(from *simEnvoy, r envoy.Request) bool {
	l := k.links[from.epoch%envoy.Seats]
	switch {
	case l == nil || l.parent%envoy.Seats != (from.epoch+2)%envoy.Seats:
		return false
	case l.relay != nil && (l.relay.closed || l.relay.s.dead):
		return false
	case l.relay != nil:
		l.relay.receive(r)
		return true
	}
	return k.toParent(l.parent, r)
}

// toParent is a datagram to a parent's own name.
func (k *kernel) toParent(epoch int, r envoy.Request) bool {
	p := k.at(epoch)
	if p != nil {
		p.asked(r)
	}
	return p != nil
}

// delivery is what becomes of a datagram.
type delivery int

const (
	delivered delivery = iota
	refused            // the name is there, and nobody behind it
	nameless
)

// answer is a datagram to whoever has the child's name by now.
func (k *kernel) answer(parent int, r envoy.Request) delivery {
	n := k.names[parent%envoy.Seats]
	switch {
	case n == nil:
		return nameless
	case !n.plain && !n.end().alive():
		return refused
	case !n.plain:
		n.end().receive(r)
		return delivered
	}
	l, child := k.links[(parent+1)%envoy.Seats], k.at(parent+1)
	switch {
	case l == nil || !l.bound:
		return nameless
	case child == nil:
		return refused
	}
	child.hear(r)
	return delivered
}

// admin is who answers at an address. A parent that has closed its admin
// doesn't, even if nobody else does yet.
// Fact 6: TestFact6TheParentLosesASharedAdminWhenItsChildStarts.
func (k *kernel) admin(address int) *simEnvoy {
	for _, p := range k.procs {
		if p.admin && k.w.adminOf(p.boot, p.epoch) == address && !p.busy() {
			return p
		}
	}
	return nil
}

// silent: somebody listens at the address and answers nobody.
func (k *kernel) silent(address int) bool {
	return slices.ContainsFunc(k.procs, func(p *simEnvoy) bool {
		return p.admin && k.w.adminOf(p.boot, p.epoch) == address && p.busy()
	})
}

// accepting are those who take new connections at a listener. Sockets are
// shared: a stopped process takes none, the others do.
func (k *kernel) accepting(at listeners) []*simEnvoy {
	var who, asleep []*simEnvoy
	for _, p := range k.procs {
		switch {
		case p.open&at == 0:
		case p.stopped:
			asleep = append(asleep, p) // its queue does
		default:
			who = append(who, p)
		}
	}
	if who == nil {
		return asleep
	}
	return who
}

// initializing is who holds the segment's flag by right.
func (k *kernel) initializing() *simEnvoy {
	for _, p := range k.procs {
		if p.step > stepExec && p.step < stepLive {
			return p
		}
	}
	return nil
}

// biggest is whom the kernel kills when memory is short: the oldest one, which
// holds most. Fact 26: TestFaults, "memory runs out".
func (k *kernel) biggest() *simEnvoy {
	if len(k.procs) == 0 {
		return nil
	}
	return k.procs[0]
}

// held: by a living Envoy, a stranger, or whoever prepares it.
func (k *kernel) held(seat int) bool {
	return k.at(seat) != nil || k.foreign[seat] || k.holder[seat] != nil
}

// answers tells whether somebody is at an epoch's own name.
func (k *kernel) answers(epoch int) bool {
	p := k.at(epoch)
	return p != nil && p.step >= stepAttached
}

// spawn is fork and exec.
func (k *kernel) spawn(p *simEnvoy) {
	if p.epoch == 0 && len(k.procs) > 0 {
		k.w.rules.broke("rule 10: epoch 0 only where nobody lives", "%s does", k.procs[0].name())
	}
	k.pids++
	p.w, p.pid, p.alive, p.born = k.w, 1000+k.pids, true, k.w.now
	p.dice = dice(k.w.seed, 1000+k.pids)
	k.procs = append(k.procs, p)
	k.w.tell(p.name(), "starts, pid %d: %s", p.pid, p.boot.describe())
	p.main(k.w.between(p.dice, 5*time.Millisecond, 60*time.Millisecond), p.attach)
}

// reap takes a dead process off the table and tells its parent.
func (k *kernel) reap(p *simEnvoy) {
	k.procs = slices.DeleteFunc(k.procs, func(q *simEnvoy) bool { return q == p })
	for _, notify := range p.waiting {
		p.owner.ours(k.w.between(p.dice, 0, 5*time.Millisecond), notify)
	}
	p.waiting = nil
}

// onExit is wait4.
func (k *kernel) onExit(p *simEnvoy, notify func()) {
	if !p.alive {
		p.owner.ours(0, notify)
		return
	}
	p.waiting = append(p.waiting, notify)
}
