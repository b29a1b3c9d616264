package hotrestart

import (
	"math/bits"
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// kernel keeps what processes share: names, seats, the segment, addresses.
type kernel struct {
	w     *world
	pids  int
	procs []*simEnvoy // living, oldest first
	links [envoy.Seats]*link
	ends  [envoy.Seats]*simParent // where the answers of the epoch in a seat go

	// segment is Envoy's shared memory; its flag says "initializing".
	// Fact 2: TestFact2ANewcomerKilledInInitBlocksTheSegmentUntilRepaired.
	segment struct{ exists, flag bool }
	foreign [envoy.Seats]bool // a seat that somebody else holds
}

// link is the pair of names between the epoch of one seat and its parent. The
// requests go to a relay, or in plain mode to the parent's own socket, and then
// the answers to the child's own.
type link struct {
	parent int
	relay  *simRelay
	bound  bool // the child has bound its name
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
	l := k.links[(parent+1)%envoy.Seats]
	if l == nil || l.parent != parent || l.relay != nil {
		if k.ends[parent%envoy.Seats] == nil {
			return nameless
		}
		k.ends[parent%envoy.Seats].receive()
		return delivered
	}
	child := k.at(parent + 1)
	switch {
	case !l.bound:
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

// spawn is fork and exec.
func (k *kernel) spawn(p *simEnvoy) {
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
		k.w.ours(k.w.between(p.dice, 0, 5*time.Millisecond), notify)
	}
	p.waiting = nil
}

// onExit is wait4.
func (k *kernel) onExit(p *simEnvoy, notify func()) {
	if !p.alive {
		k.w.ours(0, notify)
		return
	}
	p.waiting = append(p.waiting, notify)
}
