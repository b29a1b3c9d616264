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

// errUntold: neither the kernel nor an admin can tell an epoch's connections.
var errUntold = errors.New("its connections can't be counted")

// count watches a draining epoch until it has ended → Counted.
func (sh *shell) count(c *child) {
	sh.background(func() {
		b := backoff{10 * time.Millisecond, 500 * time.Millisecond}
		for b.wait(c.ctx) {
			start := time.Now()
			n, err := sh.kernelCount(c)
			if err != nil {
				n = unknown
			}
			sh.post(Counted{c.epoch, n})
			// The kernel's table grows with the node's sockets (20 ms at 1,700): looks
			// must stay a small part of a CPU.
			b.pause = max(b.pause, 20*time.Since(start))
		}
	})
}

// connections are those of one epoch's listeners. The kernel is asked first:
// an admin's gauges hold the parent's connections as well while it lives.
func (sh *shell) connections(ctx context.Context, c *child) (int, error) {
	if n, err := sh.kernelCount(c); err == nil {
		return n, nil
	}
	return c.admin.Connections(ctx)
}

// kernelCount counts the sockets of an epoch whose local port is a listener's.
// Where a connection's local port doesn't tell its listener (TPROXY, another
// netns, a Unix listener) nobody can.
func (sh *shell) kernelCount(c *child) (int, error) {
	ports := map[int]bool{}
	for _, l := range c.listeners() {
		if l.Transparent || l.NetNS != "" {
			return 0, errUntold
		}
		for _, a := range l.Addresses() {
			if a.IsUnix() || a.UDP {
				return 0, errUntold
			}
			ports[a.Port] = true
		}
	}
	return envoy.OpenSockets(c.proc.Pid(), ports)
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
	return drain.Target{
		Epoch: c.epoch,
		Done:  c.proc.Done(),
		Ask:   func(ctx context.Context) error { return sh.askToDrain(ctx, c) },
		Count: func(ctx context.Context) (int, error) { return sh.connections(ctx, c) },
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
	return envoy.AskToDrain(sh.dirs.Socket(c.epoch, "parent", c.epoch))
}
