package cmd

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"sync"

	"aether.internal/agent/internal/proxy/hotrestart"
	"aether.internal/agent/internal/proxy/systemd"
)

// supervise is the supervisor itself, and its telemetry if somebody wants it.
func supervise(ctx context.Context, cfg hotrestart.Config, tel hotrestart.TelemetryConfig, log *slog.Logger) error {
	beModest(os.LookupEnv)
	quieten(log, os.LookupEnv)
	t, metrics := openTelemetry(ctx, tel, os.LookupEnv)
	if metrics != nil {
		cfg.Tracer, cfg.Flush = t.Tracer(), t.Flush
	}
	err := runNotifying(ctx, cfg, log, metrics)
	// The last export holds the shutdown's own counters.
	if err := t.Shutdown(context.WithoutCancel(ctx)); err != nil {
		log.Debug("telemetry: the last export", "error", err)
	}
	return err
}

// runNotifying tells a service manager that wants to know how the supervisor is.
func runNotifying(ctx context.Context, cfg hotrestart.Config, log *slog.Logger, metrics *hotrestart.SupervisorMetrics) error {
	manager, err := systemd.Open(os.LookupEnv)
	if err != nil {
		log.Warn("the service manager can't be told how we are", "error", err)
	}
	defer manager.Close()
	cfg.Notify = firstServed(manager, func() {
		if err := forgetProgram(); err != nil {
			log.Debug("our program stays mapped", "error", err)
		}
	})
	s := hotrestart.New(cfg, log, metrics)
	watched, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { // until Run has ended
		manager.Watch(watched, func(ctx context.Context) error {
			_, err := s.Status(ctx)
			return err
		})
	})
	defer watching.Wait()
	defer stop()
	return s.Run(ctx)
}

// firstServed tells manager, if there is one, how we are, and calls then when an
// epoch serves for the first time.
func firstServed(manager *systemd.Manager, then func()) func(hotrestart.Notice) {
	served := false
	return func(now hotrestart.Notice) {
		if manager != nil {
			manager.Notify(now)
		}
		if now.Served && !served {
			served = true
			then()
		}
	}
}

const (
	modestGC    = 50 // %: collect from 2 MB on; saves 3 MB of RSS, costs 0.1 ms a handoff
	modestProcs = 2  // one for the relay while the other parses or hashes
)

// beModest keeps a supervisor, which sits beside every Envoy and mostly waits,
// small on large machines as well. GOGC and GOMAXPROCS win over it.
func beModest(lookup func(string) (string, bool)) {
	if _, set := lookup("GOGC"); !set {
		debug.SetGCPercent(modestGC)
	}
	if _, set := lookup("GOMAXPROCS"); !set && runtime.GOMAXPROCS(0) > modestProcs {
		runtime.GOMAXPROCS(modestProcs)
	}
}
