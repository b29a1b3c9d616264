package router

import (
	"context"
	"net/http"
	"testing"
	"time"
)

// The slot belongs to a request until its answer is over, streamed or not.
func TestASlotIsFreeWhenTheAnswerIsOver(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.start()
	for _, path := range []string{"/hold", "/stream"} {
		first := p.get(t.Context(), path)
		p.until("the first to run", func() bool { return g.running.Load() == 1 })
		second := p.get(t.Context(), "/hold")
		p.until("the second to be parked", func() bool { return p.stats().Parked == 1 })
		if n := g.running.Load(); n != 1 {
			t.Errorf("%s: %d run on one slot", path, n)
		}
		g.let()
		if !first.ok() {
			t.Errorf("%s: %v", path, first)
		}
		g.let()
		if !second.ok() {
			t.Errorf("%s: parked: %v", path, second)
		}
		p.until("the slot to be free", func() bool { return p.stats() == stats{Workers: 1, Slots: 1} })
	}
}

func TestAFullQueueAndALongParkingAreTold(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.queue, p.park = 1, 2*time.Second
	p.start()
	first := p.get(t.Context(), "/hold")
	p.until("the first to run", func() bool { return g.running.Load() == 1 })
	parked := p.get(t.Context(), "/hold")
	p.until("the second to be parked", func() bool { return p.stats().Parked == 1 })
	refused := p.get(t.Context(), "/hold")
	if <-refused.done; refused.status != http.StatusServiceUnavailable || refused.reason != "queue_full" {
		t.Error(refused)
	}
	if <-parked.done; parked.status != http.StatusServiceUnavailable || parked.reason != "park_timeout" {
		t.Error(parked)
	}
	g.let()
	if !first.ok() {
		t.Error(first)
	}
}

// Who leaves gives up the place, or the slot.
func TestAClientThatLeaves(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.start()
	ctx, leave := context.WithCancel(t.Context())
	running := p.get(ctx, "/hold")
	p.until("the first to run", func() bool { return g.running.Load() == 1 })
	gone, left := context.WithCancel(t.Context())
	p.get(gone, "/hold")
	p.until("the second to be parked", func() bool { return p.stats().Parked == 1 })
	stays := p.get(t.Context(), "/hold")
	p.until("the third to be parked", func() bool { return p.stats().Parked == 2 })
	left()
	p.until("the second's place to be free", func() bool { return p.stats().Parked == 1 })
	leave()
	<-running.done
	p.until("the third to run alone", func() bool { return g.began.Load() == 2 && g.running.Load() == 1 })
	g.let()
	if !stays.ok() {
		t.Error(stays)
	}
	p.until("all slots to be free", func() bool { return p.stats() == stats{Workers: 1, Slots: 1} })
}

// A worker that comes by the configuration takes who is parked; Envoy hears nothing.
func TestAWorkerThatComesLater(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.start()
	running := p.get(t.Context(), "/hold")
	p.until("the first to run", func() bool { return g.running.Load() == 1 })
	parked := p.get(t.Context(), "/hold")
	p.until("the second to be parked", func() bool { return p.stats().Parked == 1 })
	tcp := p.hold()
	p.slots = 2
	p.write()
	p.until("both to run", func() bool { return g.running.Load() == 2 })
	g.let()
	g.let()
	if !running.ok() || !parked.ok() {
		t.Error(running, parked)
	}
	p.flows(tcp)
}

// Fail closed: a client can't choose its worker, and without the router nobody
// gets one.
func TestWithoutTheRouterNobodyIsRouted(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.start()
	p.router.signal(9)
	<-p.router.done
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.target().HTTP+"/hold", nil)
	check(t, err)
	req.Header.Set("x-atenet-worker", g.address())
	answer, err := http.DefaultClient.Do(req)
	check(t, err)
	answer.Body.Close()
	if answer.StatusCode != http.StatusInternalServerError && answer.StatusCode != http.StatusServiceUnavailable && answer.StatusCode != http.StatusGatewayTimeout {
		t.Error(answer.Status)
	}
	if n := g.running.Load(); n != 0 {
		t.Errorf("%d requests have reached the worker", n)
	}
	p.flows(p.hold()) // what needs no worker goes on
	p.restartRouter()
	p.until("it to be ready again", func() bool { return p.status("/readyz") == http.StatusOK })
	again := p.get(t.Context(), "/hold")
	g.let()
	if !again.ok() {
		t.Error(again)
	}
}
