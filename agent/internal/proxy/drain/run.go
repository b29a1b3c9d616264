package drain

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Config of one pod's end.
type Config struct {
	Times Times // of Plan

	// Envoy is asked to drain, and how many connections it has. Both are called
	// one at a time, with a context of a few seconds; ErrRefused says that no
	// process listens at its admin.
	Envoy interface {
		Drain(context.Context) error
		Connections(context.Context) (int, error)
	}
	// EnvoySeen: its admin has answered before, so a refusal means that it's dead.
	EnvoySeen bool
	// WasReady: clients may have been sent here.
	WasReady bool

	// Unready makes readiness fall. It must not block.
	Unready func()
	// Ending tells whether the pod is ending, and not this container alone; it is
	// asked repeatedly. nil: a stop always means the pod's end.
	Ending func() bool
	// Finish ends what stands beside Envoy, and returns at once when its context
	// is over. nil: there is nothing.
	Finish func(context.Context) error
	// Mark releases Envoy.
	Mark func() error
	// Observe sees each change; it must not block. nil: nobody does.
	Observe func(Status)
	Log     *slog.Logger
}

// Ending is asked so often, for so long: the kubelet starts the hooks of a pod's
// containers side by side, and one may be late.
const (
	askPause = 100 * time.Millisecond
	askTime  = 2 * time.Second
)

// Run ends the pod; it blocks until that is over, whatever Envoy does, at the
// latest after the sum of all times and a few seconds. The end of ctx is a
// second stop: it skips what there is to wait for.
func Run(ctx context.Context, cfg Config) Outcome {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sh := &shell{
		cfg: cfg, ctx: own, events: make(chan event),
		state:  state{times: cfg.Times, ready: cfg.WasReady, seen: cfg.EnvoySeen},
		force:  func() {},
		status: Status{Connections: unknown},
	}
	defer sh.background.Wait()
	defer cancel()
	second := ctx.Done()
	sh.feed(stopped{})
	for sh.state.phase != Over {
		select {
		case ev := <-sh.events:
			sh.feed(ev)
		case <-second:
			second = nil
			sh.cfg.Log.Info("drain: asked again; what there is to wait for is skipped")
			sh.feed(hurried{})
		}
	}
	return sh.state.out
}

// shell carries out what next decides. One goroutine owns it.
type shell struct {
	cfg        Config
	ctx        context.Context
	events     chan event
	background sync.WaitGroup
	state      state
	status     Status
	said       time.Time          // when the number of connections was
	force      context.CancelFunc // ends Finish
}

func (sh *shell) feed(ev event) {
	sh.note(ev)
	var actions []action
	sh.state, actions = next(sh.state, ev)
	for _, a := range actions {
		sh.act(a)
	}
}

func (sh *shell) act(a action) {
	switch a := a.(type) {
	case unready:
		if sh.cfg.Unready != nil {
			sh.cfg.Unready()
		}
	case phaseIs:
		sh.enter(a.phase)
	case limit:
		sh.after(a.after, elapsed{a.phase})
	case pause:
		sh.after(a.d, paused{})
	case look:
		sh.post(func() event { return looked{sh.isEnding()} })
	case tell:
		sh.post(func() event { return told{call(sh.ctx, sh.cfg.Envoy.Drain)} })
	case count:
		sh.post(func() event { return sh.count(a) })
	case finish:
		sh.finish(a.within)
	case force:
		sh.force()
	case mark:
		sh.loose(func() event { return marked{sh.cfg.Mark()} })
	}
}

// post runs f beside the loop, and feeds what it returns to the loop.
func (sh *shell) post(f func() event) { sh.background.Go(func() { sh.deliver(f) }) }

// loose is post for what may hang whatever its context says, such as a file
// system: Run returns without it.
func (sh *shell) loose(f func() event) { go sh.deliver(f) }

func (sh *shell) deliver(f func() event) {
	ev := f()
	select {
	case sh.events <- ev:
	case <-sh.ctx.Done():
	}
}

func (sh *shell) after(d time.Duration, ev event) {
	sh.post(func() event { sleep(sh.ctx, d); return ev })
}

func (sh *shell) count(a count) event {
	c := counted{of: a.of}
	c.err = call(sh.ctx, func(ctx context.Context) (err error) { c.n, err = sh.cfg.Envoy.Connections(ctx); return err })
	c.at = time.Now()
	return c
}

func (sh *shell) isEnding() bool {
	if sh.cfg.Ending == nil {
		return true
	}
	for tries := askTime / askPause; tries > 0; tries-- {
		if sh.cfg.Ending() {
			return true
		}
		if !sleep(sh.ctx, askPause) {
			return false
		}
	}
	return sh.cfg.Ending()
}

func (sh *shell) finish(within time.Duration) {
	ctx, cancel := context.WithTimeout(sh.ctx, within)
	sh.force = cancel
	sh.loose(func() event {
		defer cancel()
		if sh.cfg.Finish == nil {
			return finished{}
		}
		return finished{sh.cfg.Finish(ctx)}
	})
}
