package router

import (
	"testing"

	"aether.internal/test/collector"
)

// A collector gets what was parked and how the drain went, the last phase included.
func TestACollectorGetsTheDrainsCounters(t *testing.T) {
	t.Parallel()
	c, err := collector.Start()
	check(t, err)
	t.Cleanup(c.Close)
	p, g := gated(t)
	p.queue = 1
	p.start("--drain-delay", "1s", "--envoy-drain-window", "30s", "--otlp-endpoint", c.Endpoint)
	all := p.settle(g)
	<-p.get(t.Context(), "/hold").done // the queue is full
	p.delete()
	p.awaitSaid("Envoy tells its clients to go")
	if ok := all.letAll(); ok != 3 {
		t.Errorf("%d of 3 clients whole", ok)
	}
	p.gone()
	p.wentWell()
	got := c.Received()
	if name := collector.Attribute(got.Resource.GetAttributes(), "service.name"); name != "atenet-router" {
		t.Errorf("service.name is %q", name)
	}
	for series, want := range map[[2]string]float64{
		{"resumed", "pool=workers"}: 1, {"rejected", "pool=workers,reason=queue_full"}: 1, {"queue.duration", "pool=workers"}: 1,
		{"parked", "pool=workers"}: 0, {"busy", "pool=workers"}: 0, {"slots", "pool=workers"}: 1, {"drains", "envoy=idle"}: 1,
		{"drain.phase.duration", "phase=delay"}: 1, {"drain.phase.duration", "phase=draining"}: 1,
		{"drain.phase.duration", "phase=finishing"}: 1, {"drain.phase.duration", "phase=marking"}: 1,
	} {
		if v, there := got.Value("atenet.router."+series[0], series[1]); !there || v != want {
			t.Errorf("%v is %v (there: %v), want %v\n%s", series, v, there, want, got)
		}
	}
}
