package hotrestart

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

// shell carries out what next decides. Its fields belong to the owner's
// goroutine; what it starts in the background gets what it needs by value and
// answers with events.
type shell struct {
	*Supervisor
	ctx   context.Context // ends with Run
	state State

	dirs        envoy.SeatDirs
	extra       []string
	concurrency int
	marker      *coordination.Marker
	ready       bool
	trace       *tracer
	telling     *telling    // the newest
	pinned      bool        // concurrency was configured
	examined    bool        // by the doctor
	rival       atomic.Bool // the state has one; for the lookout
	wishes      int         // how often a handoff was asked for
	noticed     Notice      // the newest that was told

	replacement *replacement    // a program that waits to replace ours; nil: none
	server      *control.Server // nil: no control socket

	children map[int]*child
	inputs   map[int]*input
	binary   *envoy.Binary // the newest that was opened
	reader   context.CancelFunc
	watching bool
	unguard  context.CancelFunc
	unlook   context.CancelFunc
	waiters  map[int]chan Result
	older    [envoy.Seats]envoy.Sitter // who lived before our newest committed epoch
	nextWait int
	started  time.Time // of the first epoch
	work     sync.WaitGroup
}

// shmDir is where Envoy's shared segment and the seats beside it live.
const shmDir = "/dev/shm"

// envoySlack is added to Envoy's own timer so that it never fires before ours.
const envoySlack = 10 * time.Second

func newShell(s *Supervisor) (*shell, error) {
	extra, err := envoy.CheckExtra(s.cfg.ExtraArgs)
	if err != nil {
		return nil, &ExitError{Code: ExitUsage, Err: err}
	}
	sh := &shell{
		Supervisor: s,
		dirs:       envoy.SeatDirs{StateDir: s.cfg.StateDir, BaseID: s.cfg.BaseID},
		extra:      extra.Args,
		marker:     coordination.NewMarker(s.cfg.ReadyMarkerPath),
		children:   map[int]*child{},
		inputs:     map[int]*input{},
		waiters:    map[int]chan Result{},
		reader:     func() {},
		unguard:    func() {},
		unlook:     func() {},
		trace:      newTracer(s.cfg.Tracer),
	}
	sh.state.Limits = s.limits()
	if sh.concurrency, err = pinConcurrency(s.cfg.Concurrency, extra.Concurrency); err != nil {
		return nil, &ExitError{Code: ExitUsage, Err: err}
	}
	sh.pinned = s.cfg.Concurrency > 0 || extra.Concurrency > 0
	if s.cfg.AdminPerEpoch && s.cfg.NoRelay {
		return nil, Exitf(ExitUsage, "--admin-per-epoch needs the relay: without it a newcomer closes its parent's admin all the same; drop --relay=false")
	}
	if err := sh.dirs.Check(); err != nil {
		return nil, &ExitError{Code: ExitUsage, Err: err}
	}
	if err := coordination.EnsureStateDir(s.cfg.StateDir); err != nil {
		return nil, &ExitError{Code: ExitTaken, Err: err}
	}
	if err := checkShm(shmDir, s.cfg.BaseID); err != nil {
		return nil, &ExitError{Code: ExitTaken, Err: err}
	}
	sh.sweep()
	if process.Inherited() == nil {
		sh.withdraw() // one that a crash left behind is nobody's word
	}
	return sh, nil
}

func (s *Supervisor) limits() Limits {
	return Limits{
		Handoff: s.cfg.HandoffDeadline, GiveWay: 10 * time.Second,
		Drain: s.cfg.DrainTime, Parent: s.cfg.ParentShutdownTime, Kill: 5 * time.Second, Silent: s.cfg.AdminUnresponsiveDeadline,
		Successor: s.cfg.SuccessorWait,
	}
}

func (sh *shell) step(is any) { sh.apply(Event{At: time.Now(), Is: is}) }

// apply lets next decide, then acts.
func (sh *shell) apply(ev Event) {
	sh.lookFirst(ev.Is)
	var actions []Action
	sh.state, actions = next(sh.state, ev)
	sh.observe(ev.Is)
	for _, a := range actions {
		sh.perform(a)
	}
	sh.rival.Store(sh.state.Rival != nil)
	sh.metrics.lives(sh.state.own(), sh.state.servingEpoch())
	sh.notify()
}

// lookFirst tells of another pod's epoch that has followed ours since we last
// looked, before an event that may be the end of ours: the kubelet asks us to
// stop as soon as that pod is ready.
func (sh *shell) lookFirst(is any) {
	epoch, ok := sh.state.atStake(is, time.Now())
	switch {
	case !ok || !sh.followed(epoch):
	case sh.state.newcomer() != nil:
		if c := sh.children[epoch]; c.proc != nil && sh.follower(c, epoch+1) {
			sh.step(Followed{epoch})
		}
	default:
		sh.step(Sighted{Epoch: epoch + 1, Lives: true, Relay: sh.dirs.IsTaken(epoch)})
	}
}

// observe keeps what the core doesn't need to know.
func (sh *shell) observe(is any) {
	switch e := is.(type) {
	case Triggered:
		sh.wishes++
	case Exited:
		sh.gone(e.Epoch)
	case Removed:
		sh.release(e.Epoch)
	case Launched:
		sh.outlived(e.Epoch)
	}
}

func (sh *shell) perform(a Action) {
	switch a := a.(type) {
	case Read:
		sh.read(a)
	case Discard:
		sh.discard(a.Input.ID)
	case Launch:
		sh.launch(a)
	case Watch:
		sh.watchNewcomer(sh.children[a.Epoch])
	case Commit:
		sh.commit(a.Epoch)
	case Publish:
		sh.publish(a.Epoch, true)
	case PublishUnready:
		sh.publish(a.Epoch, false)
	case Adopt:
		sh.adopt(a)
	case Lookout:
		sh.lookout(a.Epoch)
	case Guard:
		sh.guard(sh.children[a.Epoch])
	case Ask:
		sh.askStats(sh.children[a.Epoch])
	case Withdraw:
		sh.withdraw()
	case Health:
		sh.setHealth(a)
	case TakeBack:
		sh.takeBack(a)
	case Count:
		sh.count(sh.children[a.Epoch])
	case DrainAll:
		sh.drainAll(a.Until)
	case Signal:
		sh.signal(a)
	case Replace:
		sh.replace()
	case Forget:
		sh.release(a.Epoch)
	case Reply:
		sh.reply(a)
	case Log:
		sh.log.Log(sh.ctx, a.Level, a.Text, a.Attrs...)
	case Measure:
		sh.metrics.record(a)
	case Concluded:
		sh.trace.concluded(a.Handoff, time.Now())
	case Released:
		sh.trace.released(a, time.Now())
	}
}

// background runs f apart from the owner; Run waits for it.
func (sh *shell) background(f func()) { sh.work.Go(f) }

// publish tells the node who serves (rule 13): only now our own child is the
// committed epoch.
func (sh *shell) publish(epoch int, ready bool) {
	sh.markVictims(epoch)
	if err := sh.children[epoch].asParent.Meet(); err != nil {
		sh.log.Warn("hot-restart socket", "epoch", epoch, "error", err)
	}
	if err := sh.dirs.SetNumber(epoch, true); err != nil {
		sh.log.Warn("other supervisors take this epoch for one that is still to be committed", "epoch", epoch, "error", err)
	}
	if !ready {
		sh.withdraw()
	} else if err := sh.marker.Publish(); err != nil {
		sh.log.Error("ready marker", "error", err)
	} else {
		sh.setReady(true)
	}
	if !sh.examined {
		sh.examined = true
		sh.warn()
	}
	if sh.newerThan(epoch) { // it has been followed before it was committed, and what tells of that stays
		return
	}
	if err := sh.linkAdmin(epoch); err != nil {
		sh.log.Error("admin link", "error", err)
	}
	err := coordination.WriteHeartbeat(sh.cfg.StateDir, coordination.Heartbeat{
		Epoch: epoch, Generation: epoch + 1, Concurrency: sh.concurrency, Pod: os.Getenv("POD_NAME"),
		Admin: sh.children[epoch].admin.Address().String(),
	})
	if err != nil { // a hint, of which nothing depends in place
		sh.log.Warn("heartbeat", "error", err)
	}
}

func (sh *shell) withdraw() {
	if err := sh.marker.Withdraw(); err != nil {
		sh.log.Error("ready marker", "error", err)
	}
	sh.setReady(false)
}

func (sh *shell) setReady(ready bool) {
	if ready != sh.ready {
		sh.ready = ready
		sh.metrics.record(Measure{"ready_transitions", 1, strconv.FormatBool(ready)})
	}
}

func (sh *shell) reply(a Reply) {
	for _, w := range a.Waiters {
		if ch := sh.waiters[w]; ch != nil {
			ch <- a.Result // buffered
			delete(sh.waiters, w)
		}
	}
}

// tidy leaves nothing behind: every child is dead by now. What belongs to
// another supervisor's is left alone.
func (sh *shell) tidy() {
	sh.reader()
	for epoch := range sh.children {
		sh.release(epoch)
	}
	sh.withdraw()
	sh.work.Wait()
	for _, in := range sh.inputs { // of an epoch that died and was not started again
		in.snapshot.remove()
	}
	sh.sweep()
	taken := 0
	for n := range envoy.Seats {
		seat := sh.seatBack(n)
		if seat == nil {
			continue
		}
		defer seat.Release()
		if sh.answers(n) { // a stranger's, without a seat
			continue
		}
		taken++
		if err := sh.dirs.Clear(n); err != nil {
			sh.log.Warn("cleaning up", "error", err)
		}
	}
	if taken < envoy.Seats {
		return
	}
	coordination.RemoveHeartbeat(sh.cfg.StateDir)
	if sh.cfg.AdminPerEpoch {
		_ = os.Remove(AdminLink(sh.cfg.StateDir))
	}
	sh.removeSegment()
}

// sweep removes snapshots that a supervisor which was killed has left.
func (sh *shell) sweep() {
	if err := sweepSnapshots(sh.cfg.StateDir); err != nil {
		sh.log.Warn("cleaning up", "error", err)
	}
}

// removeSegment takes Envoy's shared segment away, all seats in our hands:
// Envoy itself always leaves it.
func (sh *shell) removeSegment() {
	if err := envoy.RemoveSegment(sh.cfg.BaseID); err != nil && !os.IsNotExist(err) {
		sh.log.Warn("cleaning up", slog.String("segment", envoy.SegmentPath(sh.cfg.BaseID)), slog.Any("error", err))
	}
}
