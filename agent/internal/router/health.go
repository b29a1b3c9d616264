package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"aether.internal/agent/internal/proxy/drain"
	"aether.internal/agent/internal/router/parking"
)

// look is how often Envoy's readiness is looked at: 0.1 ms of its CPU each.
const look = time.Second

// lookTime is what one look may take.
const lookTime = 2 * time.Second

// health is why we aren't ready, "" when we are.
type health struct {
	mu  sync.Mutex
	why string
}

// monitor keeps track of Envoy until ctx ends.
func (r *router) monitor(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		r.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *router) look(ctx context.Context) {
	one, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	live, err := r.envoy.Ready(one)
	if err == nil {
		r.seen.Store(true)
	}
	if err == nil && r.undoes && !r.draining.Load() {
		live = r.undo(one) || live
	}
	r.live.Store(live)
	why := r.whyNot()
	r.proc.SetReady(why == "")
	r.health.say(r.log, why)
}

// undo takes back what an earlier run had begun and did not finish. It is alive
// again, so the pod isn't ending: the kubelet restarts nothing in a pod that is.
// What somebody else has drained is left alone.
func (r *router) undo(ctx context.Context) (live bool) {
	undone, err := r.envoy.Undo(ctx)
	if err != nil {
		r.log.Warn("an earlier drain of Envoy can't be undone yet; it is tried again", "error", err)
		return false
	}
	r.undoes = false
	r.marker.Undone()
	if undone {
		r.log.Warn("an earlier drain of Envoy was undone; until Envoy is restarted it closes connections with their answers")
	}
	return undone
}

// whyNot is the first thing that is missing. Whoever hears "" may send clients.
func (r *router) whyNot() string {
	switch {
	case r.draining.Load():
		return "draining"
	case !r.seen.Load():
		return "Envoy's admin has not answered yet"
	case !r.xds.Acked():
		return "Envoy has not taken the configuration yet"
	case !r.live.Load():
		return "Envoy is not live"
	}
	r.wasReady.Store(true)
	return ""
}

func (h *health) say(log *slog.Logger, why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if why == h.why {
		return
	}
	h.why = why
	if why == "" {
		log.Info("ready")
	} else {
		log.Info("not ready", "why", why)
	}
}

// Status is the answer of /statusz.
type Status struct {
	Ready    bool                     `json:"ready"`
	Why      string                   `json:"why,omitempty"` // not ready
	Pools    map[string]parking.Stats `json:"pools"`
	Refused  int                      `json:"refused_by_envoy"` // configurations
	Draining *drain.Status            `json:"drain,omitempty"`
}

func (r *router) healthServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := r.whyNot(); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /statusz", func(w http.ResponseWriter, _ *http.Request) {
		why := r.whyNot()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(Status{why == "", why, r.proc.Stats(), r.xds.Refused(), r.status.Load()}) // the client left
	})
	return &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(r.log.Handler(), slog.LevelDebug)}
}

func serveHealth(s *http.Server) func(net.Listener) error {
	return func(l net.Listener) error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("health server: %w", err)
		}
		return nil
	}
}
