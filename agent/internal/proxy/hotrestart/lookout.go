package hotrestart

import (
	"context"
	"errors"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

const (
	lookoutPause = time.Second            // nobody is there, but something has stirred, or nothing would tell
	calmPause    = 5 * time.Second        // nothing stirs
	stirred      = 10 * time.Second       // so long it is looked at closely
	rivalPause   = 200 * time.Millisecond // somebody is
	ownRetry     = time.Second            // what a rival's supervisor has to start it again
	seatPatience = 5 * time.Second        // what may pass between taking a seat and answering there
	adminDoubt   = 10 * time.Second       // what may pass between a newcomer's end and what it asked for
)

// lookout watches the seat after our newest epoch's for another supervisor's
// Envoy → Sighted… (rule 11).
type lookout struct {
	*shell
	own     *child
	next    int       // the seat's epoch
	ports   counter   // of our own epoch
	listens bool      // it has been seen to listen
	linked  string    // by whom its answers were linked
	doubt   time.Time // so long a newcomer that has gone may still cost its admin
	gone    time.Time // since when nobody is there who was; zero: somebody is
	stir    *stir
}

func (sh *shell) lookout(epoch int) {
	sh.unlook()
	ctx, cancel := context.WithCancel(sh.ctx)
	sh.unlook = cancel
	c := sh.children[epoch]
	l := &lookout{shell: sh, own: c, next: epoch + 1, ports: counter{child: c}}
	sh.background(func() {
		defer cancel()
		l.watch(ctx)
	})
}

func (l *lookout) watch(ctx context.Context) {
	l.drained() // now it listens, and that must have been seen once
	l.linked = l.dirs.AnswersLinked(l.own.epoch)
	l.stir = watchStir(l.log, l.cfg.StateDir, l.dirs.Dir(l.own.epoch))
	defer l.stir.close()
	b := backoff{lookoutPause, lookoutPause}
	for l.stir.wait(ctx, b.pause) {
		if l.calm() {
			l.gone = time.Time{}
			b.pause = l.stir.pause()
			continue
		}
		start := time.Now()
		var now State
		if l.ask(ctx, func(sh *shell) { now = sh.state.clone() }) != nil {
			return
		}
		b.pause = lookoutPause
		if now.newcomer() != nil || now.sits(l.next) {
			l.gone = time.Time{}
			continue // that seat is our own newcomer's, or our oldest epoch's
		}
		if s, ok := l.look(ctx, &now); ok {
			b.pause = max(rivalPause, min(20*time.Since(start), lookoutPause))
			_ = l.ask(ctx, func(sh *shell) { sh.step(s) })
		} else if now.Rival != nil {
			b.pause = rivalPause
		}
	}
}

// calm tells, without the owner, that nobody is there and was: as it is nearly
// always.
func (l *lookout) calm() bool {
	return !l.rival.Load() && l.dirs.AnswersAreOurs(l.own.epoch) && l.dirs.AnswersLinked(l.own.epoch) == l.linked &&
		!l.dirs.Lives(l.next) && !l.passed(l.own) && time.Now().After(l.doubt)
}

// look tells what is to be told, if anything.
func (l *lookout) look(ctx context.Context, now *State) (Sighted, bool) {
	rival := now.Rival
	s := Sighted{Epoch: l.next, Lives: l.follower(l.own, l.next)}
	l.keepAnswers(ctx, s.Lives)
	// It may have come and gone between two looks, and been followed by another.
	direct := s.Lives
	s.Drained = rival != nil && rival.Superseded || (direct || rival == nil && l.passed(l.own)) && l.drained()
	s.Lives = direct || s.Drained && l.others(now)
	if s.Lives {
		l.gone = time.Time{}
		s.Relay = !direct || l.dirs.IsTaken(l.own.epoch)
		return s, true
	}
	if rival == nil && !s.Drained {
		// A newcomer that came and went between two looks may have taken the admin, or
		// what it asked for has not been read yet.
		if linked := l.dirs.AnswersLinked(l.own.epoch); linked != l.linked {
			l.linked, l.doubt = linked, time.Now().Add(adminDoubt)
			l.own.asParent.Relinked()
		}
		s.AdminLost = time.Now().Before(l.doubt) && !l.hasAdmin(ctx)
		return s, s.AdminLost
	}
	if l.gone.IsZero() {
		l.gone = time.Now()
	}
	if time.Since(l.gone) < ownRetry && envoy.Alive(l.dirs.Answers(l.next)) {
		return s, false // its supervisor may start it again
	}
	if time.Since(l.gone) < seatPatience && l.begins(now) {
		return s, false // its own successor may be about to serve
	}
	seat, err := coordination.TrySeat(shmDir, l.cfg.BaseID, l.next%envoy.Seats)
	switch {
	case err == nil:
		defer seat.Release()
		l.repair(l.next, envoy.Sitter{})
	case time.Since(l.gone) < seatPatience: // it is being started
		return s, false
	}
	if rival != nil && !rival.Superseded {
		s.AdminLost = !l.hasAdmin(ctx)
	}
	return s, true
}

// hasAdmin tells whether our epoch still has its admin. One that is slow has, and may
// have yet to read what it was asked; where it was closed we are refused, or somebody
// else answers (fact 6).
func (l *lookout) hasAdmin(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	_, err := ownAdmin(ctx, l.own)
	if errors.Is(err, context.DeadlineExceeded) {
		l.doubt = time.Now().Add(adminDoubt)
		return true
	}
	return err == nil
}

// sitters are who is at the seats.
func (sh *shell) sitters() (all [envoy.Seats]envoy.Sitter) {
	for seat := range all {
		all[seat] = envoy.SitterAt(sh.dirs.Socket(seat, "child", seat))
	}
	return all
}

// follower tells whether another supervisor's Envoy has come to a seat since ours
// was launched. Who sat there before is older than ours: of three epochs that
// live, the first sits where the fourth will.
func (sh *shell) follower(ours *child, seat int) bool {
	at := envoy.SitterAt(sh.dirs.Socket(seat, "child", seat))
	return at != envoy.Sitter{} && at != ours.older[seat%envoy.Seats]
}

// followed tells whether another supervisor's Envoy lives at the seat after an
// epoch's.
func (sh *shell) followed(epoch int) bool {
	c := sh.children[epoch]
	return c != nil && c.isLaunched() && !sh.state.sits(epoch+1) && sh.follower(c, epoch+1)
}

// replaced tells whether an epoch of ours is dead, and another supervisor's Envoy
// lives, or is about to: we were stopped for a while. sits are the seats of our epochs.
func (sh *shell) replaced(c *child, sits [envoy.Seats]bool) bool {
	if c.foreign || c.proc == nil || !envoy.HasEnded(c.proc.Pid()) {
		return false
	}
	sits[c.epoch%envoy.Seats] = false
	for seat := range envoy.Seats {
		if !sits[seat] && (sh.dirs.Lives(seat) || sh.held(seat)) {
			return true
		}
	}
	return false
}

func (sh *shell) held(seat int) bool {
	held, err := coordination.SeatHeld(shmDir, sh.cfg.BaseID, seat)
	return held && err == nil
}

// followedSoon tells of one that has taken the seat and doesn't answer there yet.
func (sh *shell) followedSoon(epoch int) bool {
	next := epoch + 1
	return !sh.state.sits(next) && !sh.dirs.Lives(next) && sh.held(next%envoy.Seats)
}

// others tells whether anybody lives at a seat that is not ours, who is not older.
func (l *lookout) others(now *State) bool {
	for seat := range envoy.Seats {
		if !now.sits(seat) && l.follower(l.own, seat) {
			return true
		}
	}
	return false
}

// begins tells whether somebody has taken a further seat and doesn't answer there
// yet.
func (l *lookout) begins(now *State) bool {
	for seat := range envoy.Seats {
		if seat != l.next%envoy.Seats && !now.sits(seat) && !l.dirs.Lives(seat) && l.held(seat) {
			return true
		}
	}
	return false
}

// keepAnswers takes our epoch's answers back when nobody is behind their name
// any more: its main thread would wait for ten seconds, and abort (fact 4). No
// newcomer of ours is there, or the name is that one's.
func (l *lookout) keepAnswers(ctx context.Context, lives bool) {
	_ = l.ask(ctx, func(sh *shell) {
		name := sh.dirs.Socket(l.own.epoch, "child", l.next)
		if sh.state.newcomer() != nil || sh.children[l.own.epoch] != l.own || envoy.Alive(name) {
			return
		}
		if !lives { // somebody may be about to put his own name there
			seat, err := coordination.TrySeat(shmDir, sh.cfg.BaseID, l.next%envoy.Seats)
			if err != nil {
				return
			}
			defer seat.Release()
		}
		if err := sh.dirs.LinkAnswers(l.own.epoch); err != nil {
			sh.log.Warn("our epoch's answers can't be taken back from a dead supervisor", "epoch", l.own.epoch, "error", err)
			return
		}
		if r := sh.state.Rival; r == nil || !r.Superseded || !r.Relay {
			// It may still answer what that one has asked. After the commit that is for
			// stats, and a newcomer of ours asks for something else first.
			l.own.doubt = time.Now().Add(sendRetry)
		}
		sh.log.Warn("the supervisor of another pod's epoch is dead; our epoch's answers come to us again", "epoch", l.own.epoch)
	})
}

// drained tells whether our own epoch has closed its listening sockets, which it
// does when it is told to drain. Where the kernel can't tell (TPROXY, another
// netns, no TCP listener) the heartbeat is believed.
func (l *lookout) drained() bool {
	select {
	case <-l.own.proc.Done():
		return true
	default:
	}
	if _, err := l.ports.kernel(); err == nil {
		if l.ports.listening() {
			l.listens = true
			return false
		}
		if l.listens {
			return true
		}
	}
	return l.passed(l.own)
}

// passed tells whether another epoch was committed after ours.
func (sh *shell) passed(ours *child) bool {
	h, ok := coordination.ReadHeartbeat(sh.cfg.StateDir)
	return ok && h.Epoch > ours.epoch
}
