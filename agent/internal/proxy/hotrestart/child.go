package hotrestart

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

// child is the shell's side of a Generation. The fields above launched are set
// before the launch; those below belong to the launch until launched is closed
// and don't change after.
type child struct {
	epoch, parent int
	foreign       bool         // another supervisor's: it has an admin, and a socket that can be asked
	sitter        envoy.Sitter // that one
	input         *input       // nil of a foreign one
	admin         *envoy.Admin
	tail          *tail
	ctx           context.Context // ends when it is taken back or has ended
	stop          context.CancelFunc
	live          chan struct{} // closed when its relay has seen drain_listeners
	tookAdmin     atomic.Bool   // its parent has been asked to close the admin they share
	hasty         chan struct{} // closed when it must be killed at once
	hurry         sync.Once

	launched chan struct{}
	older    [envoy.Seats]envoy.Sitter // who lived when it took its seat
	proc     *process.Process
	relay    *envoy.Relay
	asParent *envoy.Parent    // what it answers its own children
	ofParent *envoy.Parent    // what another supervisor's parent answers it
	follows  envoy.Sitter     // that parent
	seated   bool             // its seat's directory is its own
	want     *envoy.Resources // what its parent had, nil: nothing to compare

	known atomic.Pointer[envoy.Resources] // what it had when last asked

	// The owner's.
	removing  bool      // takeBack is under way
	committed bool      // its parent was told to drain, or it did so itself
	doubt     time.Time // until then it may answer what a dead newcomer has asked it without us
}

// launch prepares everything and forks, in the background: a seat may take a
// second to become free.
func (sh *shell) launch(a Launch) {
	in := sh.inputs[a.Input.ID]
	ctx, stop := context.WithCancel(sh.ctx)
	c := &child{
		epoch: a.Epoch, parent: a.Parent, input: in,
		admin: envoy.NewAdmin(sh.adminOf(in, a.Epoch)), tail: newTail(sh.log, a.Epoch),
		ctx: ctx, stop: stop,
		live: make(chan struct{}), hasty: make(chan struct{}), launched: make(chan struct{}),
	}
	parent := sh.children[a.Parent]
	sh.children[a.Epoch] = c
	if sh.started.IsZero() {
		sh.started = time.Now()
	}
	var older *[envoy.Seats]envoy.Sitter
	if sh.state.Lost != nil { // it has lived before, and may have been followed since
		before := sh.older
		older = &before
	}
	leads := sh.state.servingEpoch() == a.Parent
	var sits [envoy.Seats]bool
	for seat := range sits {
		sits[seat] = sh.state.sits(seat)
	}
	first, doubt := sh.started, time.Time{}
	if parent != nil {
		doubt = parent.doubt
	}
	sh.background(func() {
		failed := sh.start(c, parent, start{leads, sits, older, doubt, first})
		close(c.launched)
		l := Launched{Epoch: c.epoch, Failed: failed}
		if c.proc != nil {
			l.Pid = c.proc.Pid()
			sh.background(func() { sh.reap(c) })
		}
		sh.tell(c, l)
	})
}

// start is what a launch needs of the owner's, by value.
type start struct {
	leads bool                       // its parent is our serving epoch
	sits  [envoy.Seats]bool          // the seats of our epochs
	older *[envoy.Seats]envoy.Sitter // nil: whoever lives now
	doubt time.Time
	first time.Time
}

func (sh *shell) start(c, parent *child, s start) *Refusal {
	if !sh.outwait(c, parent, s.doubt) {
		return &Refusal{Step: "prepare the seat", Text: unread, Code: ExitUnexpected}
	}
	c.want = sh.askParent(c, parent)
	seat, err := coordination.TakeSeat(c.ctx, shmDir, sh.cfg.BaseID, c.epoch%envoy.Seats)
	if err != nil {
		return &Refusal{Step: "take the seat", Text: err.Error(), Code: ExitTaken, Again: errors.Is(err, coordination.ErrSeatHeld)}
	}
	defer seat.Release() // Envoy inherits it: held while that Envoy lives
	if c.older = sh.sitters(); s.older != nil {
		c.older = *s.older
	}
	replaced := parent != nil && sh.replaced(parent, s.sits)
	if parent != nil && (s.leads && sh.passed(parent) || sh.newerThan(c.parent) || replaced) {
		return &Refusal{Step: "take the seat", Text: "another pod's epoch serves in place of its parent", Code: ExitTaken, Again: parent.foreign || replaced}
	}
	if parent == nil {
		if err := sh.alone(); err != nil {
			return &Refusal{Step: "take the seat", Text: err.Error(), Code: ExitTaken, Again: true}
		}
	}
	if err := sh.standBetween(c, parent, s.first); err != nil {
		return &Refusal{Step: "prepare the seat", Text: err.Error(), Code: ExitUnexpected, Again: errors.Is(err, errPeerGone)}
	}
	if err := sh.fork(c, seat); err != nil {
		return &Refusal{Step: "start Envoy", Text: err.Error(), Code: ExitBinary}
	}
	return nil
}

// standBetween takes what the epoch will answer to its children, and puts the
// relay into its parent's place under its own path, or in plain mode the parent's
// real names.
func (sh *shell) standBetween(c, parent *child, first time.Time) (err error) {
	c.seated = true
	if parent != nil {
		// They may still go to a dead newcomer's directory, which we are about to
		// remove: an answer that finds no name at all ends the parent (fact 4).
		if err := sh.dirs.LinkAnswers(c.parent); errors.Is(err, os.ErrNotExist) && parent.foreign {
			return errPeerGone
		} else if err != nil {
			return err
		}
		if !parent.foreign {
			parent.asParent.Relinked()
		}
	}
	if err := sh.dirs.Prepare(c.epoch); err != nil {
		return err
	}
	if err := sh.dirs.SetNumber(c.epoch, false); err != nil {
		return err
	}
	c.asParent, err = envoy.OpenParent(sh.dirs.Socket(c.epoch, "parent", c.epoch), sh.dirs.Answers(c.epoch), sh.log.With("epoch", c.epoch))
	if err != nil {
		return err
	}
	if err := sh.dirs.LinkAnswers(c.epoch); err != nil || parent == nil {
		return err
	}
	from := parent.asParent
	if parent.foreign {
		if err := sh.follow(c, parent); err != nil {
			return err
		}
		from = c.ofParent
	} else {
		// Another supervisor's newcomer may have been killed in this seat, which is
		// ours now, before we ever saw it (fact 2).
		sh.repairSegment(c)
	}
	if err := sh.dirs.LinkUDP(c.parent, c.epoch); err != nil {
		return err
	}
	if c.input.mode == ModePlain {
		return sh.dirs.LinkPlain(c.parent, c.epoch)
	}
	o := sh.relayOptions(c, first)
	o.Parent = from
	o.Seen = func(r envoy.Request) {
		switch r { // only flags: a relay must not wait for the owner
		case envoy.ShutdownAdmin:
			c.tookAdmin.Store(!sh.cfg.AdminPerEpoch)
		case envoy.DrainListeners:
			close(c.live)
		}
	}
	c.relay, err = envoy.StartRelay(o)
	return err
}

func (sh *shell) relayOptions(c *child, first time.Time) envoy.RelayOptions {
	return envoy.RelayOptions{
		Listen:        sh.dirs.Socket(c.epoch, "parent", c.parent),
		Child:         sh.dirs.Socket(c.epoch, "child", c.epoch),
		FirstStart:    first,
		PassTerminate: c.input.mode == ModeUDP,
		AnswerAdmin:   sh.cfg.AdminPerEpoch,
		Log:           sh.log.With("epoch", c.epoch),
	}
}

func (sh *shell) fork(c *child, seat *coordination.Seat) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	c.proc, err = process.Start(process.Spec{
		Path: c.input.binary.Path, Exe: c.input.binary.File,
		Args: sh.launchArgs(c), Stdout: os.Stdout, Stderr: w,
		Inherit: []*os.File{seat.File()},
	})
	if err != nil {
		return errors.Join(err, r.Close())
	}
	c.asParent.Born(c.proc.Pid())
	if c.relay != nil {
		c.relay.Born(c.proc.Pid())
	}
	sh.background(func() { c.tail.read(r) }) // ends with the last writer
	if c.parent >= 0 {
		sh.markVictim(c, true)
	}
	return nil
}

func (sh *shell) launchArgs(c *child) []string {
	timer := sh.cfg.ParentShutdownTime
	if c.input.mode == ModeRelay {
		// Envoy's own timer runs from LIVE; it must never come first.
		timer += sh.cfg.HandoffDeadline + envoySlack
	}
	return envoy.Launch{
		BaseID: sh.cfg.BaseID, Epoch: c.epoch, ConfigPath: c.input.snapshot.path(), ConfigYAML: sh.overlay(c.epoch),
		SocketPath: sh.dirs.SocketPath(c.epoch), Concurrency: sh.concurrency,
		DrainTime: sh.cfg.DrainTime, ParentShutdownTime: timer, Extra: sh.extra,
	}.Args()
}

// tell hands an event about a child to the owner. A failed try uses up no
// number (rule 10), so what is still to be said of one that was taken back must
// not be taken for the next child of that number: it is dropped.
func (sh *shell) tell(c *child, is any) {
	_ = sh.ask(context.WithoutCancel(sh.ctx), func(sh *shell) {
		if sh.children[c.epoch] == c {
			sh.step(is)
		}
	})
}

// reap tells the owner how a child ended.
func (sh *shell) reap(c *child) {
	status := c.proc.Wait()
	c.stop()
	code := ExitNewest
	if status.Signal != 0 {
		code = SignalCode(status.Signal)
	}
	c.tail.settle()
	e := Exited{Epoch: c.epoch, Status: status.String(), Code: code, Log: c.tail.lines()}
	_ = sh.ask(context.WithoutCancel(sh.ctx), func(sh *shell) {
		if sh.children[c.epoch] == c {
			e.Rival = sh.followed(c.epoch) || sh.followedSoon(c.epoch) || sh.newerThan(c.epoch)
			sh.step(e)
		}
	})
}

// gone lets relays answer for a dead parent.
func (sh *shell) gone(epoch int) {
	c := sh.children[epoch]
	switch {
	case c == nil:
	case c.foreign:
		for _, n := range sh.children {
			if n.parent == epoch && n.isLaunched() && n.ofParent != nil {
				n.ofParent.Gone()
			}
		}
	case c.isLaunched() && c.asParent != nil:
		c.asParent.Gone()
	}
}

// outlived tells a relay that has just been set up of a foreign parent that has
// ended meanwhile.
func (sh *shell) outlived(epoch int) {
	if c := sh.children[epoch]; c != nil && c.ofParent != nil && sh.children[c.parent] == nil {
		c.ofParent.Gone()
	}
}

func (c *child) isLaunched() bool {
	select {
	case <-c.launched:
		return true
	default:
		return false
	}
}

// release frees what a dead child held. Its relay may go only now (fact 4).
func (sh *shell) release(epoch int) {
	c := sh.children[epoch]
	if c == nil {
		return
	}
	delete(sh.children, epoch)
	c.stop()
	<-c.launched
	c.admin.Close()
	if c.foreign {
		return
	}
	sh.tearDown(c)
	sh.discard(c.input.id)
}

// tearDown takes away a dead child's relay and names. Under a living parent's
// path its name stays, and is ours from now on: that parent may yet answer.
func (sh *shell) tearDown(c *child) {
	var errs []error
	if c.seated {
		seat := sh.seatBack(c.epoch)
		c.seated = seat != nil // else somebody else's newcomer sits there by now
		if seat != nil {
			defer seat.Release()
		}
	}
	if parent := sh.children[c.parent]; parent != nil && c.seated {
		err := sh.dirs.Unlink(c.parent, c.epoch)
		if parent.foreign && errors.Is(err, os.ErrNotExist) {
			err = nil // it is dead, and its own supervisor has tidied up
		}
		errs = append(errs, err)
		if c.relay == nil && !c.committed && c.proc != nil {
			parent.doubt = time.Now().Add(sendRetry)
		}
	}
	if c.relay != nil {
		c.relay.Close()
	}
	if c.ofParent != nil {
		c.ofParent.Close()
	}
	if c.asParent != nil {
		c.asParent.Close()
	}
	if c.seated {
		c.seated = false
		errs = append(errs, sh.dirs.Clear(c.epoch))
	}
	if err := errors.Join(errs...); err != nil {
		sh.log.Warn("cleaning up", "epoch", c.epoch, "error", err)
	}
}

func (sh *shell) signal(a Signal) {
	c := sh.children[a.Epoch]
	if c == nil || c.proc == nil {
		return
	}
	if c.ofParent != nil && c.relay != nil && a.Signal == syscall.SIGTERM {
		c.relay.Spare()
	}
	if err := c.proc.Signal(a.Signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		sh.log.Warn("signal", "epoch", a.Epoch, "signal", a.Signal.String(), "error", err)
	}
}

func (sh *shell) commit(epoch int) {
	c := sh.children[epoch]
	c.committed, sh.older = true, c.older
	if c.relay != nil {
		c.relay.Commit()
	}
}

// markVictims: the committed epoch is no longer the one to go when memory runs
// out; its draining parents are.
func (sh *shell) markVictims(serving int) {
	for epoch, c := range sh.children {
		if c.isLaunched() && c.proc != nil && len(sh.children) > 1 {
			sh.markVictim(c, epoch != serving)
		}
	}
}

func (sh *shell) markVictim(c *child, yes bool) {
	if err := setVictim(c.proc.Pid(), yes); err != nil && !errors.Is(err, os.ErrNotExist) {
		sh.log.Debug("out-of-memory score", "epoch", c.epoch, "error", err)
	}
}
