package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// kubelet stands for the node's kubelet and the DaemonSet's controller: it rolls
// with a surge pod, deletes, kills at the end of the grace period, starts again
// what ends, and asks the marker whether a pod is ready.
type kubelet struct {
	w       *world
	rng     *rand.Rand
	grace   time.Duration
	wanted  int // the template's generation
	made    int
	pods    []*simPod
	ending  bool // the DaemonSet is deleted
	settled bool
}

// simPod is a pod whose one container is a supervisor with its Envoys in a PID
// namespace of their own.
type simPod struct {
	name     string
	template int
	s        *simShell // nil: it waits to be started again
	restarts int
	deleting bool
	misses   int // of the probe, in a row
	ready    bool
}

const (
	syncPeriod   = time.Second
	probeMisses  = 6 // at a look a second: period 2 s, threshold 3
	firstBackOff = 10 * time.Second
	mostBackOff  = 5 * time.Minute
)

// fleet makes a node of pods out of a world. Without a relay nothing stands between
// a pod's Envoy and whatever befalls the other pod's, so that is left out here
// (docs/pods.md says what it means).
func (w *world) fleet() {
	d := dice(w.seed, 6)
	w.plain = false
	w.kubelet = &kubelet{w: w, rng: dice(w.seed, 7)}
	if d.IntN(3) == 0 {
		w.limits.Successor = 10 * time.Second
	}
	l := w.limits
	w.kubelet.grace = l.Successor + l.Parent + l.Drain/2 + 2*l.Kill + 5*time.Second
	w.kubelet.create()
	w.after(0, w.kubelet.sync)
}

func (k *kubelet) create() {
	k.made++
	p := &simPod{name: fmt.Sprintf("pod %d", k.made), template: k.wanted}
	k.pods = append(k.pods, p)
	k.w.tell("kubelet", "creates %s, template %d", p.name, p.template)
	k.w.after(k.w.between(k.rng, 200*time.Millisecond, 3*time.Second), func() {
		if slices.Contains(k.pods, p) && !p.deleting {
			p.s = k.w.start(p.name)
		} else {
			k.drop(p)
		}
	})
}

// sync is what happens once a second.
func (k *kubelet) sync() {
	for _, p := range slices.Clone(k.pods) {
		k.probe(p)
		if p.s != nil && (p.s.over || p.s.dead) {
			k.ended(p)
		}
	}
	k.control()
	if k.ending && len(k.pods) == 0 {
		if last := k.w.shells[len(k.w.shells)-1]; last.over { // and was not killed
			k.w.rules.nothingLeft()
		}
		k.w.over = true
	}
	k.w.after(syncPeriod+time.Duration(k.rng.IntN(int(200*time.Millisecond))), k.sync)
}

// probe is the exec probe on the pod's own marker.
func (k *kubelet) probe(p *simPod) {
	if p.s != nil && !p.s.dead && p.s.marker {
		p.misses, p.ready = 0, true
		return
	}
	if p.misses++; p.misses >= probeMisses {
		p.ready = false
	}
}

// ended starts a container again, after a pause that grows, unless its pod goes.
func (k *kubelet) ended(p *simPod) {
	s := p.s
	p.s = nil
	if s.over {
		k.w.tell("kubelet", "%s has ended with %d: %s", p.name, s.state.Code, s.state.Reason)
	}
	k.w.rules.mayBeDark("the container of " + p.name + " has ended")
	if p.deleting {
		k.drop(p)
		return
	}
	pause := min(firstBackOff<<min(p.restarts, 10), mostBackOff)
	if p.restarts++; p.restarts == 1 {
		pause = time.Second
	}
	k.w.after(pause, func() {
		if !p.deleting {
			p.s = k.w.start(p.name)
		}
	})
}

func (k *kubelet) drop(p *simPod) {
	k.pods = slices.DeleteFunc(k.pods, func(q *simPod) bool { return q == p })
}

// control is the DaemonSet's controller: maxSurge 1, maxUnavailable 0.
func (k *kubelet) control() {
	if k.ending {
		return
	}
	var old, current []*simPod
	fresh := false
	for _, p := range k.pods {
		switch {
		case p.deleting:
		case p.template == k.wanted:
			current = append(current, p)
			fresh = fresh || p.ready
		default:
			old = append(old, p)
		}
	}
	if len(current) == 0 && len(k.pods) < 3 {
		k.create()
	}
	for _, p := range old {
		if fresh || !p.ready && len(old) > 1 {
			k.delete(p)
		}
	}
	for fresh && len(current) > 1 && !current[0].deleting { // one was made by hand
		k.delete(current[0])
		current = current[1:]
	}
}

// roll is `kubectl rollout restart`.
func (k *kubelet) roll() {
	k.wanted++
	k.w.tell("user", "kubectl rollout restart: template %d", k.wanted)
}

// delete is SIGTERM now and SIGKILL at the end of the grace period.
func (k *kubelet) delete(p *simPod) {
	if p == nil || p.deleting {
		return
	}
	p.deleting = true
	k.w.tell("kubelet", "deletes %s", p.name)
	s := p.s
	if s == nil {
		if p.restarts > 0 {
			k.drop(p)
		}
		return
	}
	s.ours(0, func() { s.step(Stop{By: "terminated"}) })
	k.w.after(k.grace, func() {
		if p.s == s && !s.over && !s.dead {
			k.w.tell("kubelet", "the grace period of %s is over", p.name)
			k.kill(p)
		}
	})
}

// kill ends a container at once.
func (k *kubelet) kill(p *simPod) {
	if p == nil || p.s == nil || p.s.dead || p.s.over {
		return
	}
	k.w.tell("kubelet", "SIGKILL to all of %s", p.name)
	p.s.kill()
}

// kill ends a supervisor and its Envoys, which share a PID namespace.
func (s *simShell) kill() {
	s.w.rules.faults++
	for _, p := range slices.Clone(s.w.kernel.procs) {
		if p.owner == s {
			p.die(byFault, "signal 9 (SIGKILL), with its supervisor")
		}
	}
	s.dead, s.marker = true, false
	for waiter, by := range s.w.rules.owed {
		if by == s { // its connection is closed
			delete(s.w.rules.owed, waiter)
		}
	}
}

// reboot ends everything, and may empty what is in memory.
func (k *kubelet) reboot(empty bool) {
	k.w.tell("fault", "the node is rebooted; memory is emptied: %t", empty)
	for _, p := range k.pods {
		k.kill(p)
	}
	n := &k.w.kernel
	if empty {
		n.segment.exists, n.segment.flag, n.beat = false, false, nil
		n.names, n.links = [envoy.Seats]*names{}, [envoy.Seats]*link{}
	}
}

// pod is one of those there are.
func (k *kubelet) pod(arg byte) *simPod {
	if len(k.pods) == 0 {
		return nil
	}
	return k.pods[int(arg)%len(k.pods)]
}

// settle rolls once more, and waits until one pod is left.
func (k *kubelet) settle(then func()) {
	if !k.settled {
		k.settled = true
		k.roll()
	}
	until := k.w.now + 4*k.w.rules.longest() + 3*mostBackOff
	helps := k.w.now + k.w.rules.longest() + mostBackOff
	var look func()
	look = func() {
		switch {
		case k.w.now > helps && k.stuck():
			helps = until
			k.delete(k.pods[0])
			look()
		case len(k.pods) == 1 && k.pods[0].template == k.wanted && k.pods[0].ready && !k.pods[0].deleting:
			k.w.after(time.Second, then)
		case k.w.now > until:
			k.w.rules.broke("what is broken heals", "%d pods are left of a roll at %s", len(k.pods), until)
		default:
			k.w.after(time.Second, look)
		}
	}
	look()
}

// stuck: a pod of the old template has taken over from the new one's, which
// therefore is never ready. The controller waits for ever, and an operator
// deletes the old pod (docs/pods.md).
func (k *kubelet) stuck() bool {
	slices.SortStableFunc(k.pods, func(a, b *simPod) int { return a.template - b.template })
	return len(k.pods) == 2 && k.pods[0].ready && k.pods[0].template < k.wanted && k.pods[1].s != nil && k.pods[1].s.state.succeeded()
}

// end deletes the DaemonSet.
func (k *kubelet) end() {
	k.ending = true
	for _, p := range slices.Clone(k.pods) {
		k.delete(p)
	}
}
