package hotrestart

import (
	"context"
	"fmt"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// nobodyAlive refuses to start over a living Envoy of this base-id: a second
// epoch 0 silently steals the first one's segment and path sockets (fact 1).
// An Envoy whose supervisor was killed is given a moment: it was sent SIGTERM
// by the kernel (fact 3).
func (sh *shell) nobodyAlive() error {
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	b := backoff{50 * time.Millisecond, 50 * time.Millisecond}
	err := sh.whoIsAlive()
	if err != nil {
		sh.log.Info("somebody is alive; waiting for it to end, in case its supervisor was killed", "at most", goodbye.String(), "who", err)
	}
	for err != nil && b.wait(ctx) {
		err = sh.whoIsAlive()
	}
	return err
}

// goodbye is what an orphaned Envoy may take to end. It tells its parent to end
// first, and where the relay was killed as well it looks for that one for ten
// seconds (fact 4).
const goodbye = 15 * time.Second

func (sh *shell) whoIsAlive() error {
	for seat := range envoy.Seats {
		held, err := coordination.SeatHeld(shmDir, sh.cfg.BaseID, seat)
		if err != nil {
			return err
		}
		ours := envoy.Alive(sh.dirs.Socket(seat, "child", seat))
		switch {
		case held && ours:
			return fmt.Errorf("base-id %d: an Envoy of this state directory (%s) is alive at seat %d, and taking over from another supervisor is not supported in place; stop it first", sh.cfg.BaseID, sh.cfg.StateDir, seat)
		case held:
			return fmt.Errorf("base-id %d is taken: seat %d is held by an Envoy of another state directory; choose another --base-id", sh.cfg.BaseID, seat)
		case ours:
			return fmt.Errorf("base-id %d: an Envoy that is not ours answers at %s; choose another --base-id or --state-dir", sh.cfg.BaseID, sh.dirs.Socket(seat, "child", seat))
		case envoy.Alive(envoy.AbstractSocket(sh.cfg.BaseID, "child", seat)):
			return fmt.Errorf("base-id %d is taken: an Envoy that is not ours answers at the abstract socket envoy_domain_socket_child_%d; choose another --base-id", sh.cfg.BaseID, uint64(sh.cfg.BaseID)*10+uint64(seat))
		}
	}
	return nil
}
