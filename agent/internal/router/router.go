// Package router is the control plane of a pod with an Envoy: it configures
// Envoy, gives each request to a worker or parks it, and ends the pod without
// losing one.
package router

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/metric"

	"aether.internal/agent/internal/proxy/drain"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/router/config"
	"aether.internal/agent/internal/router/extproc"
	"aether.internal/agent/internal/router/xds"
)

// Options of a router.
type Options struct {
	Config               string // a file or a directory
	Admin                envoy.Address
	XDS, ExtProc, Health envoy.Address // where we listen
	Marker               string
	AwaitWaiter          bool // without a waiter a stop is taken for our own restart
	Listeners            drain.Listeners
	Times                drain.Times // of drain.Plan
	Meter                metric.Meter
	Log                  *slog.Logger
}

// router is a running one.
type router struct {
	o       Options
	log     *slog.Logger
	admin   *envoy.Admin
	envoy   *drain.Envoy
	marker  *drain.Marker
	xds     *xds.Server
	proc    *extproc.Server
	metrics *instruments
	health  health

	undoes                         bool // an earlier run had begun to drain Envoy; for look only
	live, seen, wasReady, draining atomic.Bool
	status                         atomic.Pointer[drain.Status]
}

// Run serves until stop ends, and then drains the pod: nil. A second stop skips
// the waits: the end of hurry. Whatever can't be had at the start is an error,
// and so is a server that fails later.
func Run(stop, hurry context.Context, o Options) error {
	r := &router{o: o, log: o.Log, admin: envoy.NewAdmin(o.Admin), marker: drain.NewMarker(o.Marker)}
	defer r.admin.Close()
	r.envoy = drain.NewEnvoy(r.admin, o.Listeners)
	var err error
	if r.metrics, err = newInstruments(o.Meter, r); err != nil {
		return err
	}
	r.xds, r.proc = xds.New(o.ExtProc, o.Log), extproc.New(r.metrics, o.Log)
	defer r.xds.Stop()
	if err := r.clear(); err != nil {
		return err
	}
	c, err := config.Load(o.Config)
	if err == nil {
		err = r.apply(c)
	}
	if err != nil {
		return err
	}
	return r.serve(stop, hurry, c.Hash)
}

// clear removes a stale marker. Without the marker's directory no drain could
// ever be told, so that is an error; a disk that is full now may not be later.
func (r *router) clear() error {
	left, err := r.marker.Clear()
	if _, e := os.Stat(filepath.Dir(r.o.Marker)); e != nil {
		return fmt.Errorf("%w: mount a volume there, and in the Envoy container too", err)
	}
	if err != nil {
		r.log.Warn("the drain's marker can't be reserved; it is tried again in the drain", "error", err)
	}
	r.undoes = left.Drain
	if left.Marker {
		r.log.Warn("a stale drain marker was removed: this container was restarted after a drain", "path", r.o.Marker)
	}
	return nil
}

// apply gives workers to requests before Envoy sends any.
func (r *router) apply(c config.Config) error {
	r.proc.Set(c.Pools)
	if err := r.xds.Set(c); err != nil {
		return err
	}
	r.log.Info("configured", "listeners", len(c.Listeners), "pools", len(c.Pools), "clusters", len(c.Clusters), "version", c.Hash[:12])
	return nil
}

func (r *router) serve(stop, hurry context.Context, hash string) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(stop))
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	failed := make(chan error, 3)
	stopServers, err := r.listen(&running, failed)
	defer stopServers()
	if err != nil {
		return err
	}
	running.Go(func() { r.monitor(ctx) })
	running.Go(func() {
		config.Watch(ctx, r.o.Config, hash, func(c config.Config) {
			if err := r.apply(c); err != nil {
				r.log.Error("configuration: can't be applied", "error", err)
			}
		}, r.log)
	})
	select {
	case err := <-failed:
		return err
	case <-stop.Done():
	}
	r.drain(hurry)
	return nil
}

// listen starts the three servers; the xDS server is the last to be stopped.
func (r *router) listen(running *sync.WaitGroup, failed chan<- error) (stop func(), err error) {
	web := r.healthServer()
	stop = func() {
		_ = web.Close()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = r.proc.Stop(ended) // nothing, after a drain
		r.xds.Stop()
	}
	for _, s := range []struct {
		name  string
		at    envoy.Address
		serve func(net.Listener) error
	}{{"xds", r.o.XDS, r.xds.Serve}, {"ext_proc", r.o.ExtProc, r.proc.Serve}, {"health", r.o.Health, serveHealth(web)}} {
		l, err := listenAt(s.at)
		if err != nil {
			return stop, fmt.Errorf("%s server: %w", s.name, err)
		}
		running.Go(func() {
			if err := s.serve(l); err != nil {
				failed <- err
			}
		})
	}
	return stop, nil
}

// listenAt removes a socket that a killed predecessor has left; a living one's
// port is an error.
func listenAt(a envoy.Address) (net.Listener, error) {
	if !a.IsUnix() {
		return net.Listen("tcp", a.String())
	}
	if c, err := net.Dial("unix", a.Path); err == nil {
		c.Close()
		return nil, fmt.Errorf("somebody listens at %s already", a)
	}
	if err := os.Remove(a.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", a.Path)
}

// drain ends the pod.
func (r *router) drain(hurry context.Context) {
	r.draining.Store(true)
	cfg := drain.Config{
		Times: r.o.Times, Envoy: remembered{r.envoy, r}, EnvoySeen: r.seen.Load(), WasReady: r.wasReady.Load(),
		Unready: func() { r.proc.SetReady(false) },
		Finish:  r.proc.Stop, Mark: r.marker.Write, Observe: r.observe, Log: r.log,
	}
	if r.o.AwaitWaiter {
		cfg.Ending = r.marker.Awaited
	}
	out := drain.Run(hurry, cfg)
	r.metrics.drained(out)
}

// remembered is an Envoy of which our successor will know that we have drained it.
type remembered struct {
	*drain.Envoy
	router *router
}

func (e remembered) Drain(ctx context.Context) error {
	if err := e.router.marker.Begin(); err != nil {
		e.router.log.Debug("drain: it isn't remembered", "error", err)
	}
	return e.Envoy.Drain(ctx)
}

func (r *router) observe(st drain.Status) {
	if old := r.status.Swap(&st); old != nil && old.Phase != st.Phase {
		r.metrics.phase(old.Phase, st.Since.Sub(old.Since))
	}
}
