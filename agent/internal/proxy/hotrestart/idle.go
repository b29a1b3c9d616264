package hotrestart

import (
	"context"
	"errors"
	"time"

	"aether.internal/agent/internal/proxy/drain"
	"aether.internal/agent/internal/proxy/envoy"
)

// unknown is a count that nobody can tell.
const unknown = -1

// longestPause is the most between two looks at a draining epoch.
const longestPause = time.Second

// errUntold: neither the kernel nor an admin can tell an epoch's connections.
var errUntold = errors.New("its connections can't be counted")

// count watches a draining epoch until it has ended → Counted.
func (sh *shell) count(c *child) {
	sh.markVictim(c, true) // and not who serves, when memory runs out
	sh.background(func() {
		b := backoff{10 * time.Millisecond, 500 * time.Millisecond}
		k := counter{child: c}
		for b.wait(c.ctx) {
			start := time.Now()
			n, err := k.kernel()
			if err != nil && sh.cfg.AdminPerEpoch { // a shared one answers for the successor
				n, err = c.admin.Connections(c.ctx)
			}
			if err != nil || n == 0 && k.listening() {
				n = unknown
			}
			sh.tell(c, Counted{c.epoch, n})
			// The kernel's table grows with the node's sockets (20 ms at 1,700): looks
			// must stay a small part of a CPU. On a busy machine a look takes long
			// because it waits, and the next handoff may wait for this epoch's end.
			b.pause = max(b.pause, min(20*time.Since(start), longestPause))
		}
	})
}

// listening: it has not closed its listeners, because its main thread is busy or
// stopped, or its drain has only just been passed. It may accept at any moment,
// and would be ended with that connection.
func (k *counter) listening() bool { return k.sockets != nil && k.sockets.Listening() }

// counter counts the connections of one epoch's listeners, look by look.
type counter struct {
	child   *child
	known   *envoy.Resources // what the ports were taken from
	sockets *envoy.Sockets   // nil before the first look
}

// all are those that anybody can tell. The kernel is asked first: an admin's
// gauges hold the parent's connections as well while it lives.
func (k *counter) all(ctx context.Context) (int, error) {
	if n, err := k.kernel(); err == nil {
		return n, nil
	}
	return k.child.admin.Connections(ctx)
}

// kernel counts the sockets whose local port is a listener's. Where a
// connection's local port doesn't tell its listener (TPROXY, another netns, a
// Unix listener) nobody can.
func (k *counter) kernel() (int, error) {
	if known := k.child.known.Load(); k.sockets == nil || known != k.known {
		ports, err := portsOf(k.child.listeners())
		if err != nil {
			return 0, err
		}
		k.known, k.sockets = known, envoy.NewSockets(k.child.proc.Pid(), ports)
	}
	return k.sockets.Count()
}

func portsOf(listeners []envoy.Listener) (map[int]bool, error) {
	ports := map[int]bool{}
	for _, l := range listeners {
		if l.Transparent || l.NetNS != "" {
			return nil, errUntold
		}
		for _, a := range l.Addresses() {
			if a.IsUnix() || a.UDP {
				return nil, errUntold
			}
			ports[a.Port] = true
		}
	}
	return ports, nil
}

// listeners are all that an epoch may have connections of.
func (c *child) listeners() []envoy.Listener {
	all := c.input.boot.Listeners
	known := c.known.Load()
	if known == nil {
		return all
	}
	for _, d := range known.DynamicListeners {
		all = append(all[:len(all):len(all)], d.Listener)
	}
	return append(all[:len(all):len(all)], known.Active...)
}

// drainAll is the drained stop (rule 8) → Drained.
func (sh *shell) drainAll(until time.Time) {
	sh.unguard()
	var all []drain.Target
	newest := -1
	for epoch, c := range sh.children {
		all = append(all, sh.drainTarget(c))
		newest = max(newest, epoch)
	}
	c := sh.children[newest]
	ctx, cancel := context.WithDeadline(sh.ctx, until)
	sh.background(func() {
		defer cancel()
		if drain.Stop(ctx, sh.drainTarget(c), all, sh.log) {
			sh.post(Drained{})
		}
	})
}

func (sh *shell) drainTarget(c *child) drain.Target {
	k := counter{child: c}
	return drain.Target{
		Epoch: c.epoch,
		Done:  c.proc.Done(),
		Ask:   func(ctx context.Context) error { return sh.askToDrain(ctx, c) },
		Count: k.all,
	}
}

// askToDrain tells an epoch to have its connections closed. One that has lost
// its admin is told by the hot-restart request (fact 6).
func (sh *shell) askToDrain(ctx context.Context, c *child) error {
	err := identify(ctx, c)
	if err == nil {
		if err := c.admin.HealthcheckFail(ctx); err != nil {
			return err
		}
		return c.admin.DrainListeners(ctx, true, true)
	}
	sh.log.Warn("stop: the admin is silent; draining by the hot-restart socket", "epoch", c.epoch, "error", err)
	return c.asParent.AskToDrain()
}
