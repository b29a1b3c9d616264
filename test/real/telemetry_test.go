package real

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/collector"
	"aether.internal/test/node"
)

// A real collector gets, from the built agent with a real Envoy under load, what
// docs/telemetry.md shows: the trace of each try, and every counter, those of the
// shutdown included. What it got is left in out/telemetry.txt.
func TestACollectorGetsTracesAndTheShutdownsCounters(t *testing.T) {
	t.Setenv("NODE_NAME", "node-1")
	t.Setenv("POD_NAME", "aether-proxy-8x2kq")
	c, err := collector.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	s := newStage(t)
	s.start("--otlp-endpoint", c.Endpoint)
	s.mixed(time.Second)
	s.write("v2")
	s.await("epoch 1 to serve alone", node.Alone(1))

	s.raw(append(s.yaml(), "listenerz: 7\n"...))
	s.await("the refusal", func(st node.Status) bool { return st.LastFailure != nil && st.LastFailure.Step == "validate" })
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	s.raw(s.withListenerAt(busy.Addr().(*net.TCPAddr).Port))
	s.await("the newcomer to be taken back, and the lost admin to be healed", func(st node.Status) bool {
		return st.LastFailure != nil && st.LastFailure.Step == "start" && node.Alone(2)(st)
	})
	s.unharmed()
	s.stop()

	got := c.Received()
	s.must(os.MkdirAll("../../out", 0o755))
	s.must(os.WriteFile(filepath.Join("..", "..", "out", "telemetry.txt"), []byte(got.String()), 0o644))
	for series, want := range map[string]float64{
		"restart_triggers{trigger=start}": 1, "handoff.duration{outcome=started}": 1, "handoff.duration{outcome=committed}": 2,
		"handoff.duration{outcome=refused}": 1, "handoff.duration{outcome=failed}": 1, "rollbacks{step=start}": 1,
		"config_validation_failures{step=validate}": 1, "parents_ended{reason=idle}": 2, "drain.duration{}": 2, "segment_repairs{}": 1,
		"restart_triggers{trigger=heal}": 1, "ready_transitions{ready=true}": 1, "child_exits{kind=crash}": 0,
		// Of the shutdown itself.
		"ready_transitions{ready=false}": 1, "child_exits{kind=expected}": 3, "generations{}": 0, "epoch{}": -1,
	} {
		name, attributes, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if v, there := got.Value("aether.supervisor."+name, attributes); !there || v != want {
			t.Errorf("%s is %v (there: %v), want %v", series, v, there, want)
		}
	}
	want := []string{
		"handoff trigger validate launch live verify commit",
		"handoff trigger validate launch live verify commit release",
		"handoff trigger validate",
		"handoff trigger validate launch live take back",
		"handoff launch live verify commit release", // with the last good input
	}
	traces := got.Traces()
	for i, w := range want {
		if i >= len(traces) || strings.Join(collector.Names(traces[i]), " ") != w {
			t.Errorf("%d traces; number %d is not %q:\n%s", len(traces), i, w, got)
			break
		}
	}
	for key, want := range map[string]string{"service.name": "aether-proxy-supervisor", "k8s.node.name": "node-1", "k8s.pod.name": "aether-proxy-8x2kq"} {
		if v := collector.Attribute(got.Resource.GetAttributes(), key); v != want {
			t.Errorf("%s is %q, want %q", key, v, want)
		}
	}
}

// A collector that takes connections and never answers: nobody notices, at no
// step, and the log has one line about it.
func TestABlackHoledCollectorIsNotNoticed(t *testing.T) {
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "100")
	t.Setenv("OTEL_METRIC_EXPORT_TIMEOUT", "200")
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hole.Close() })
	s := newStage(t)
	s.start("--otlp-endpoint", hole.Addr().String())
	s.mixed(time.Second)
	s.hup()
	s.await("epoch 1 to serve alone", node.Alone(1))
	s.until("the failure to be said", func() bool { return s.run.Logged("telemetry can't be exported") > 0 })
	s.unharmed()
	s.signal(syscall.SIGTERM)
	s.exit(0)
	if n := s.run.Logged("telemetry"); n != 1 {
		t.Errorf("%d lines about telemetry, want one", n)
	}
	s.nothingLeft()
}
