package hotrestart

import (
	"fmt"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// census is a look at who lives on this base-id (rule 10): never from a recorded
// number alone, but from seats' locks and sockets that answer. Whoever sits there
// says himself which epoch he is, in a directory that is made anew with each.
type census struct {
	seats    [envoy.Seats]sitting
	stranger string // somebody who isn't ours
}

// sitting is a seat.
type sitting struct {
	live      bool // an Envoy of our state directory, by its lock and its socket
	tended    bool // its supervisor lives as well
	epoch     int  // its full number
	committed bool
}

func (sh *shell) whoLives() (census, error) {
	var c census
	for seat := range envoy.Seats {
		held, err := coordination.SeatHeld(shmDir, sh.cfg.BaseID, seat)
		if err != nil {
			return c, err
		}
		answers := sh.dirs.Lives(seat)
		switch {
		case held && answers:
			s := sitting{live: true, tended: envoy.Alive(sh.dirs.Answers(seat))}
			s.epoch, s.committed = sh.numberAt(seat)
			c.seats[seat] = s
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

// numberAt is the number of the epoch in a seat. Where that can't be read it is
// the largest that fits and isn't newer than the heartbeat's: to take a newcomer
// for an old epoch only leads to a seat that is held.
func (sh *shell) numberAt(seat int) (epoch int, committed bool) {
	if epoch, committed, ok := sh.dirs.Number(seat); ok {
		return epoch, committed
	}
	h, _ := coordination.ReadHeartbeat(sh.cfg.StateDir)
	for epoch = h.Epoch; epoch > seat && epoch%envoy.Seats != seat; {
		epoch--
	}
	return max(epoch, seat), false
}

// newcomerBut tells whether an Envoy may be initialising in another seat than an
// epoch's. Its parent, while it lives, is not, and who is older has been followed,
// whatever their seats say: one that was committed, or another supervisor's that was
// found to be LIVE (parent).
func (sh *shell) newcomerBut(epoch int, parent envoy.Sitter) bool {
	before := (epoch + envoy.Seats - 1) % envoy.Seats
	at := envoy.SitterAt(sh.dirs.Socket(before, "child", before))
	n, committed := sh.numberAt(before)
	followed := at != envoy.Sitter{} && n == epoch-1 && (committed || at == parent)
	for seat := range envoy.Seats {
		if seat == epoch%envoy.Seats || !sh.dirs.Lives(seat) {
			continue
		}
		if n, committed := sh.numberAt(seat); !committed && !(followed && n < epoch) {
			return true
		}
	}
	return false
}

// newerThan tells whether an Envoy lives that has come after an epoch.
func (sh *shell) newerThan(epoch int) bool {
	for seat := range envoy.Seats {
		if n, _ := sh.numberAt(seat); n > epoch && sh.dirs.Lives(seat) {
			return true
		}
	}
	return false
}

// answers tells whether anybody is at an epoch's names.
func (sh *shell) answers(seat int) bool {
	return sh.dirs.Lives(seat) || envoy.Alive(envoy.AbstractSocket(sh.cfg.BaseID, "child", seat))
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

// longestTry is how long a newcomer may live that is not committed: until its
// deadline, and then until its connections have ended (rule 7). Whoever is there
// for longer has a supervisor that is stopped.
func (l Limits) longestTry() time.Duration {
	return l.Handoff + min(2*l.Drain, l.Parent) + 10*time.Second
}

// judge finds the newest. One that isn't committed is on its way, and somebody
// else's business for a while. One whose successor has died serves nobody, and if
// somebody is about to start that one again, the seat's lock decides between us.
// The seat after it may still be the oldest one's.
func (c census) judge(handoff, try time.Duration) verdict {
	newest := c.newest()
	switch {
	case c.stranger != "":
		return verdict{newest: -1, awaits: c.stranger, atMost: goodbye, refused: true}
	case newest == nil:
		return verdict{newest: -1}
	}
	next := c.seats[(newest.epoch+1)%envoy.Seats]
	switch {
	case next.live:
		return verdict{newest: newest.epoch, awaits: fmt.Sprintf("epoch %d to end, which is the oldest and sits where the next one will", next.epoch), atMost: handoff, refused: true}
	case !newest.tended:
		return verdict{newest: newest.epoch, awaits: fmt.Sprintf("epoch %d, whose supervisor is dead, to end", newest.epoch), atMost: goodbye}
	case !newest.committed:
		return verdict{newest: newest.epoch, awaits: fmt.Sprintf("epoch %d to be committed or taken back", newest.epoch), atMost: try}
	}
	return verdict{newest: newest.epoch}
}

func (c census) newest() (newest *sitting) {
	for i := range c.seats {
		if s := &c.seats[i]; s.live && (newest == nil || s.epoch > newest.epoch) {
			newest = s
		}
	}
	return newest
}

// anybody tells whether one of ours lives.
func (c census) anybody() bool { return c.newest() != nil }
