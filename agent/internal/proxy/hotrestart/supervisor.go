// Package hotrestart supervises one Envoy and hands its work over, epoch by
// epoch, without dropping a connection: in place, when the bootstrap or the
// binary changes. Every decision is in next, a pure function (next.go,
// release.go, stop.go); the rest of the package carries decisions out.
package hotrestart

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/process"
)

// Supervisor owns the Envoy process lifecycle and performs hot restarts.
type Supervisor struct {
	cfg     Config
	log     *slog.Logger
	metrics *SupervisorMetrics
	signals chan os.Signal

	events chan Event
	asks   chan func(*shell)
	done   chan struct{}
}

// New creates a Supervisor. metrics may be nil to disable instrumentation.
func New(cfg Config, log *slog.Logger, metrics *SupervisorMetrics) *Supervisor {
	if cfg.HandoffDeadline == 0 {
		cfg.HandoffDeadline = DefaultHandoffDeadline
	}
	if cfg.AdminUnresponsiveDeadline == 0 {
		cfg.AdminUnresponsiveDeadline = DefaultAdminUnresponsiveDeadline
	}
	if cfg.Validate == "" {
		cfg.Validate = ValidateAlways
	}
	return &Supervisor{
		cfg: cfg, log: log, metrics: metrics,
		events: make(chan Event), asks: make(chan func(*shell)), done: make(chan struct{}),
	}
}

// Run starts Envoy and supervises it until ctx ends or a SIGTERM or SIGINT
// arrives (then it returns nil, drained), or until nothing serves any more (an
// *ExitError names the exit code). It installs its own signal handlers, and
// needs process.Main. Run may be called once.
func (s *Supervisor) Run(ctx context.Context) error {
	if !process.HasMain() {
		return process.ErrNoMain
	}
	s.signals = make(chan os.Signal, 16)
	signal.Notify(s.signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1)
	defer signal.Stop(s.signals)
	process.Release()

	sh, err := newShell(s)
	if err != nil {
		return err
	}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	sh.ctx = background
	var helpers sync.WaitGroup
	heritage := process.Inherited()
	if heritage != nil {
		if err := sh.inherit(heritage); err != nil {
			return err
		}
	} else if err := sh.listen(); err != nil {
		return err
	}
	if sh.server != nil {
		helpers.Go(func() { // the control socket, until the loop has ended
			if err := sh.server.Serve(background, s, s.log); err != nil {
				s.log.Error("control socket ended", "error", err)
			}
		})
	}
	if heritage == nil {
		sh.step(Triggered{By: TriggerStart})
	}
	s.loop(ctx, sh, s.signals)
	// Whoever still wants to say something must not wait for a listener.
	close(s.done)
	stop()
	sh.tidy()
	helpers.Wait()
	if sh.state.Code != ExitOK {
		return Exitf(sh.state.Code, "%s", sh.state.Reason)
	}
	return nil
}

// loop owns all state: every event, question and signal passes here.
func (s *Supervisor) loop(ctx context.Context, sh *shell, signals <-chan os.Signal) {
	cancelled := ctx.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for sh.state.Stage != Done {
		arm(timer, sh.state.Wake())
		select {
		case ev := <-s.events:
			sh.apply(ev)
		case ask := <-s.asks:
			ask(sh)
		case sig := <-signals:
			sh.step(eventOf(sig))
		case <-cancelled:
			cancelled = nil // counts as one SIGTERM
			sh.step(Stop{By: "context: " + context.Cause(ctx).Error()})
		case <-timer.C:
			sh.step(Tick{})
		}
	}
}

func arm(t *time.Timer, at time.Time) {
	wait := 24 * time.Hour
	if !at.IsZero() {
		wait = max(time.Until(at), 0)
	}
	t.Reset(wait)
}

func eventOf(sig os.Signal) any {
	switch sig {
	case syscall.SIGHUP:
		return Triggered{By: TriggerSignal}
	case syscall.SIGUSR1:
		return Reopen{}
	}
	return Stop{By: sig.String()}
}

// post hands an event to the owner; it is dropped once the owner has gone.
func (s *Supervisor) post(is any) {
	select {
	case s.events <- Event{At: time.Now(), Is: is}:
	case <-s.done:
	}
}

// ask runs f on the owner's goroutine.
func (s *Supervisor) ask(ctx context.Context, f func(*shell)) error {
	ran := make(chan struct{})
	select {
	case s.asks <- func(sh *shell) { defer close(ran); f(sh) }:
		<-ran
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.done:
		return errors.New("the supervisor has stopped")
	}
}

// listen takes the control socket.
func (sh *shell) listen() (err error) {
	if sh.cfg.ControlSocket == "" {
		return nil
	}
	sh.server, err = control.Listen(sh.cfg.ControlSocket)
	switch {
	case errors.Is(err, control.ErrTaken):
		return &ExitError{Code: ExitTaken, Err: err}
	case err != nil:
		return &ExitError{Code: ExitUsage, Err: err}
	}
	return nil
}
