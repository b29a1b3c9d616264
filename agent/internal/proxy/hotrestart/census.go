package hotrestart

import (
	"fmt"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// census is a look at who lives on this base-id (rule 10): never from a recorded
// number, but from seats' locks and sockets that answer.
type census struct {
	live      [envoy.Seats]bool // an Envoy of our state directory, by its lock and its socket
	tended    [envoy.Seats]bool // its supervisor lives as well
	stranger  string            // somebody who isn't ours
	heartbeat coordination.Heartbeat
	beats     bool // there is a heartbeat
}

func (sh *shell) whoLives() (census, error) {
	var c census
	c.heartbeat, c.beats = coordination.ReadHeartbeat(sh.cfg.StateDir)
	for seat := range envoy.Seats {
		held, err := coordination.SeatHeld(shmDir, sh.cfg.BaseID, seat)
		if err != nil {
			return c, err
		}
		answers := envoy.Alive(sh.dirs.Socket(seat, "child", seat))
		switch {
		case held && answers:
			c.live[seat] = true
			c.tended[seat] = envoy.Alive(sh.dirs.Answers(seat))
		case held:
			c.stranger = fmt.Sprintf("base-id %d is taken: seat %d is held by an Envoy of another state directory; choose another --base-id", sh.cfg.BaseID, seat)
		case answers:
			c.stranger = fmt.Sprintf("base-id %d: an Envoy that is not ours answers at %s; stop it first, or choose another --base-id or --state-dir", sh.cfg.BaseID, sh.dirs.Socket(seat, "child", seat))
		case envoy.Alive(envoy.AbstractSocket(sh.cfg.BaseID, "child", seat)):
			c.stranger = fmt.Sprintf("base-id %d is taken: an Envoy that is not ours answers at the abstract socket envoy_domain_socket_child_%d; stop it first (a pod that isn't coordinated with us has to be deleted before this one starts), or choose another --base-id", sh.cfg.BaseID, uint64(sh.cfg.BaseID)*10+uint64(seat))
		}
	}
	return c, nil
}

// answers tells whether anybody is at an epoch's names.
func (sh *shell) answers(seat int) bool {
	return envoy.Alive(sh.dirs.Socket(seat, "child", seat)) || envoy.Alive(envoy.AbstractSocket(sh.cfg.BaseID, "child", seat))
}

// verdict is what a census means.
type verdict struct {
	newest  int    // the epoch to take over from; -1: nobody lives
	awaits  string // what should happen first, "" for nothing
	atMost  time.Duration
	refused bool // if it doesn't happen, there is no way
}

// goodbye is what an orphaned Envoy may take to end. It tells its parent to end
// first, and where the relay was killed as well it looks for that one for ten
// seconds (fact 4).
const goodbye = 15 * time.Second

// judge finds the newest: the live seat whose next seat is not live. One after
// the heartbeat's is on its way, and somebody else's business for a while. One
// before it has lost its successor: nobody serves, and if somebody is about to
// start that one again, the seat's lock decides between us.
func (c census) judge(handoff time.Duration) verdict {
	newest := -1
	for seat := range envoy.Seats {
		if c.live[seat] && !c.live[(seat+1)%envoy.Seats] {
			newest = seat
		}
	}
	all := c.live[0] && c.live[1] && c.live[2]
	if all && c.beats {
		newest = c.heartbeat.Epoch % envoy.Seats
	}
	switch {
	case c.stranger != "":
		return verdict{newest: -1, awaits: c.stranger, atMost: goodbye, refused: true}
	case newest < 0 && !all:
		return verdict{newest: -1}
	case all:
		return verdict{newest: c.number(max(newest, 0)), awaits: "the oldest of three epochs to end", atMost: handoff, refused: true}
	case !c.tended[newest]:
		return verdict{newest: c.number(newest), awaits: fmt.Sprintf("epoch %d, whose supervisor is dead, to end", c.number(newest)), atMost: goodbye}
	case c.beats && c.heartbeat.Epoch%envoy.Seats != (newest+2)%envoy.Seats:
		return verdict{newest: c.number(newest)}
	}
	return verdict{newest: c.number(newest), awaits: fmt.Sprintf("epoch %d to be committed or taken back", c.number(newest)), atMost: handoff}
}

// number is the full number of the epoch at a seat: near the heartbeat's, else
// the smallest that fits.
func (c census) number(seat int) int {
	if c.beats {
		for _, n := range []int{c.heartbeat.Epoch, c.heartbeat.Epoch + 1, c.heartbeat.Epoch - 1} {
			if n >= 0 && n%envoy.Seats == seat {
				return n
			}
		}
	}
	return seat
}
