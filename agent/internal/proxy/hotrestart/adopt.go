package hotrestart

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// peerPause is the pause between two looks whether another supervisor's epoch
// lives: connect() costs 7 µs (fact 1). A newcomer's question that it has left
// unanswered waits for the next.
const peerPause = 200 * time.Millisecond

// adopt makes another supervisor's epoch one of our children as far as it goes:
// it may be asked, by its admin and by its socket, and watched.
func (sh *shell) adopt(a Adopt) {
	p := sh.inputs[a.Input.ID].peer
	ctx, stop := context.WithCancel(sh.ctx)
	c := &child{epoch: a.Epoch, parent: none, foreign: true, sitter: p.sitter, admin: envoy.NewAdmin(p.admin), ctx: ctx, stop: stop, launched: make(chan struct{})}
	close(c.launched)
	if p.known != nil {
		c.known.Store(p.known)
	}
	sh.children[a.Epoch] = c
	sh.watchPeer(c)
}

// watchPeer tells when another supervisor's epoch has ended.
func (sh *shell) watchPeer(c *child) {
	sh.background(func() {
		b := backoff{peerPause, peerPause}
		for sh.sits(c) {
			if !b.wait(c.ctx) {
				return
			}
		}
		sh.tell(c, Exited{Epoch: c.epoch, Status: "its socket answers no more"})
	})
}

// sits tells whether the very Envoy that was found still sits there, and no other
// of that number.
func (sh *shell) sits(foreign *child) bool {
	at := envoy.SitterAt(sh.dirs.Socket(foreign.epoch, "child", foreign.epoch))
	return at != envoy.Sitter{} && at == foreign.sitter
}

// errPeerGone: whom it follows has ended since it was seen.
var errPeerGone = errors.New("the other pod's epoch has ended meanwhile")

// follow takes what another supervisor's epoch answers to our newcomer c, whose
// seat we hold. So nobody else is between it and LIVE, and a flag in the
// segment that says so was left by somebody dead (fact 2).
func (sh *shell) follow(c, parent *child) error {
	if !sh.sits(parent) {
		return errPeerGone
	}
	c.follows = parent.sitter
	sh.repairSegment(c)
	if c.input.mode == ModePlain {
		return nil // it is linked straight
	}
	timed := c.input.mode == ModeUDP
	var err error
	c.ofParent, err = envoy.OpenParent(sh.dirs.Socket(parent.epoch, "parent", parent.epoch), sh.dirs.Taken(c.epoch, timed), sh.log.With("epoch", parent.epoch))
	if err != nil {
		return err
	}
	if err := c.ofParent.Meet(); err != nil || !sh.sits(parent) {
		return errPeerGone
	}
	if err := sh.dirs.LinkTaken(parent.epoch, c.epoch, timed); errors.Is(err, fs.ErrNotExist) {
		return errPeerGone
	} else if err != nil {
		return err
	}
	return nil
}

// alone makes sure that epoch 0, whose seat we hold, finds nobody: somebody may
// have started since the survey. A heartbeat is of a former life then, and its
// number must not be taken for ours.
func (sh *shell) alone() error {
	for seat := range envoy.Seats {
		held := false
		if seat != 0 {
			var err error
			if held, err = coordination.SeatHeld(shmDir, sh.cfg.BaseID, seat); err != nil {
				return err
			}
		}
		if held || sh.dirs.Lives(seat) {
			return errors.New("somebody else has started meanwhile")
		}
	}
	coordination.RemoveHeartbeat(sh.cfg.StateDir)
	return nil
}

// seatBack takes the seat of a dead child of ours again, for as long as its
// traces are removed: whoever else has it by now has put his own there. nil: so
// it is. A probe holds it for an instant only.
func (sh *shell) seatBack(epoch int) *coordination.Seat {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	seat, err := coordination.TakeSeat(ctx, shmDir, sh.cfg.BaseID, epoch%envoy.Seats)
	if err != nil {
		return nil
	}
	return seat
}
