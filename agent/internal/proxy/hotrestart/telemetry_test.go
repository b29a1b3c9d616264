package hotrestart

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/test/collector"
)

// pipeline is a telemetry under test, what it logs, and its instruments.
type pipeline struct {
	*Telemetry
	metrics *SupervisorMetrics
	log     *lockedBuffer
}

func openPipeline(t *testing.T, endpoint string) *pipeline {
	t.Helper()
	log := &lockedBuffer{}
	tel, err := NewTelemetry(t.Context(), TelemetryConfig{
		OTLPEndpoint: endpoint, ServiceVersion: "1.2.3", BaseID: 7,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewSupervisorMetrics(tel.Meter())
	if err != nil {
		t.Fatal(err)
	}
	return &pipeline{tel, m, log}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func startCollector(t *testing.T) *collector.Collector {
	t.Helper()
	c, err := collector.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// drive plays a story to a real tracer and real instruments, as the shell does.
func (p *pipeline) drive(s *script, tr *tracer, events ...any) {
	for _, ev := range events {
		s.after(10 * time.Millisecond).on(ev)
		p.carryOut(s, tr)
	}
}

func (p *pipeline) carryOut(s *script, tr *tracer) {
	for _, a := range s.did {
		switch a := a.(type) {
		case Measure:
			p.metrics.record(a)
		case Concluded:
			tr.concluded(a.Handoff, s.at.Add(time.Millisecond))
		case Released:
			tr.released(a, s.at)
		}
	}
	p.metrics.lives(len(s.state.Gens), s.state.servingEpoch())
}

// good answers the read, 10 ms later.
func (p *pipeline) good(s *script, tr *tracer) {
	s.after(10 * time.Millisecond).good(ModeRelay)
	p.carryOut(s, tr)
}

func TestTheLastExportHoldsEverything(t *testing.T) {
	t.Setenv("NODE_NAME", "node-1")
	t.Setenv("POD_NAME", "aether-proxy-x7")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
	c := startCollector(t)
	p := openPipeline(t, c.Endpoint)
	s, tr := newScript(t), newTracer(p.Tracer())
	p.drive(s, tr, Triggered{By: TriggerStart})
	p.good(s, tr)
	p.drive(s, tr, Launched{Epoch: 0, Pid: 1}, WentLive{0}, Verified{0})
	// One that is taken back, one that is refused, one that works.
	p.drive(s, tr, Triggered{By: TriggerConfig})
	p.good(s, tr)
	p.drive(s, tr, Launched{Epoch: 1, Pid: 2}, Exited{Epoch: 1, Status: "exit code 1"}, Removed{Epoch: 1, Repaired: true})
	p.drive(s, tr, Triggered{By: TriggerConfig})
	p.drive(s, tr, Prepared{ID: s.state.Reading.ID, Failed: &Refusal{Step: "validate", Text: "no such field\xff", Code: 3}})
	p.drive(s, tr, Triggered{By: TriggerSignal}, Triggered{By: TriggerReload})
	p.good(s, tr)
	p.drive(s, tr, Launched{Epoch: 1, Pid: 3}, WentLive{1}, Verified{1})
	p.drive(s, tr, Counted{0, 0}, Counted{0, 0}, Exited{Epoch: 0})
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}

	got := c.Received()
	for series, want := range map[string]float64{
		"epoch{}": 1, "generations{}": 1,
		"restart_triggers{trigger=config}": 2, "restart_triggers{trigger=signal}": 1, "restart_triggers{trigger=reload}": 1,
		"handoff.duration{outcome=started}": 1, "handoff.duration{outcome=failed}": 1,
		"handoff.duration{outcome=refused}": 1, "handoff.duration{outcome=committed}": 1,
		"commit_wait.duration{}": 2, "config_validation_failures{step=validate}": 1, "rollbacks{step=start}": 1,
		"segment_repairs{}": 1, "parents_ended{reason=idle}": 1, "drain.duration{}": 1,
		"child_exits{kind=newcomer}": 1, "child_exits{kind=expected}": 1,
	} {
		name, attributes, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		if v, there := got.Value(Prefix+name, attributes); !there || v != want {
			t.Errorf("%s is %v (there: %v), want %v", series, v, there, want)
		}
	}
	for key, want := range map[string]string{
		"service.name": serviceName, "service.version": "1.2.3", "k8s.node.name": "node-1", "k8s.pod.name": "aether-proxy-x7",
		"service.instance.id": "aether-proxy-x7/7", "deployment.environment": "test",
	} {
		if v := collector.Attribute(got.Resource.GetAttributes(), key); v != want {
			t.Errorf("resource attribute %s is %q, want %q", key, v, want)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
	checkTraces(t, got)
}

func checkTraces(t *testing.T, got *collector.Received) {
	t.Helper()
	want := []string{
		"handoff trigger validate launch live verify commit",
		"handoff trigger validate launch live take back",
		"handoff trigger validate",
		"handoff trigger validate launch live verify commit release",
	}
	traces := got.Traces()
	if len(traces) != len(want) {
		t.Fatalf("%d traces, want %d\n%s", len(traces), len(want), got)
	}
	for i, trace := range traces {
		if names := strings.Join(collector.Names(trace), " "); names != want[i] {
			t.Errorf("trace %d is %q, want %q", i, names, want[i])
		}
		for _, span := range trace[1:] {
			if !bytes.Equal(span.ParentSpanId, trace[0].SpanId) || span.EndTimeUnixNano < span.StartTimeUnixNano {
				t.Errorf("trace %d: span %s is not one of the root's, or ends before it starts", i, span.Name)
			}
		}
	}
	for i, message := range map[int]string{1: "start: the newcomer ended by itself (exit code 1)", 2: "validate: no such field?"} {
		last := traces[i][len(traces[i])-1]
		if last.Name == "take back" { // the step before it is the one that failed
			last = traces[i][len(traces[i])-2]
		}
		if traces[i][0].Status.GetMessage() != message || last.Status.GetMessage() != message {
			t.Errorf("trace %d says %q, its last step %q; want %q", i, traces[i][0].Status.GetMessage(), last.Status.GetMessage(), message)
		}
	}
	root := traces[3][0]
	for key, want := range map[string]string{"aether.epoch": "1", "aether.parent_epoch": "0", "aether.outcome": control.Committed, "aether.triggers": "signal"} {
		if v := collector.Attribute(root.Attributes, key); v != want {
			t.Errorf("%s is %q, want %q", key, v, want)
		}
	}
}

func TestTelemetryIsSwitchedByTheEnvironment(t *testing.T) {
	none := func(string) (string, bool) { return "", false }
	if TelemetryWanted("", none) || !TelemetryWanted("c:4317", none) {
		t.Error("the flag alone decides when the environment says nothing")
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} {
		if !TelemetryWanted("", func(n string) (string, bool) { return "http://c:4317", n == name }) {
			t.Errorf("%s names a collector", name)
		}
	}
	if _, err := NewTelemetry(t.Context(), TelemetryConfig{}); err == nil {
		t.Error("no collector, and no error")
	}

	c := startCollector(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+c.Endpoint)
	t.Setenv("OTEL_SERVICE_NAME", "edge")
	send := func() {
		p := openPipeline(t, "")
		p.metrics.record(Measure{"rollbacks", 1, "start"})
		newTracer(p.Tracer()).concluded(Handoff{Outcome: control.Refused, Since: time.Now(), At: time.Now()}, time.Now())
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	send()
	got := c.Received()
	if len(got.Exports) != 1 || len(got.Spans) == 0 || collector.Attribute(got.Resource.GetAttributes(), "service.name") != "edge" {
		t.Errorf("%s", got)
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	spans := len(got.Spans)
	send()
	if got = c.Received(); len(got.Exports) != 2 || len(got.Spans) != spans {
		t.Errorf("without traces: %d exports, %d spans", len(got.Exports), len(got.Spans))
	}
	t.Setenv("OTEL_TRACES_EXPORTER", "")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://"+c.Endpoint)
	send()
	if got = c.Received(); len(got.Exports) != 2 || len(got.Spans) == spans {
		t.Errorf("a collector for traces only: %d exports, %d spans", len(got.Exports), len(got.Spans))
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	send()
	if got = c.Received(); len(got.Exports) != 2 {
		t.Error("a disabled SDK has exported")
	}
	t.Setenv("OTEL_SDK_DISABLED", "")
	t.Setenv("OTEL_METRICS_EXPORTER", "prometheus")
	if _, err := NewTelemetry(t.Context(), TelemetryConfig{}); err == nil || !strings.Contains(err.Error(), "OTEL_METRICS_EXPORTER=prometheus: there are otlp and none") {
		t.Error(err)
	}
}

func TestEndpoints(t *testing.T) {
	for _, good := range []string{"", "c:4317", "127.0.0.1:4317", "[::1]:4317", "http://c:4317", "https://c:4317/"} {
		if err := CheckEndpoint(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"c", ":4317", "c:", "http://c:4318/v1/metrics", "ftp://c:1", "a:b:c"} {
		if err := CheckEndpoint(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// Without telemetry everything works, and nothing is there.
func TestNilTelemetry(t *testing.T) {
	var m *SupervisorMetrics
	m.record(Measure{"epoch", 1, ""})
	m.lives(1, 0)
	tr := newTracer(nil)
	tr.concluded(Handoff{}, time.Time{})
	tr.released(Released{}, time.Time{})
	var tel *Telemetry
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := NewSupervisorMetrics(tel.Meter()); err != nil {
		t.Error(err)
	}
	if tel.Tracer() == nil {
		t.Error("no tracer")
	}
}

// What the core never said yet must not make a series of its own each time.
func TestUnknownLabelsAreOneSeries(t *testing.T) {
	c := startCollector(t)
	p := openPipeline(t, c.Endpoint)
	for i := range 100 {
		p.metrics.record(Measure{"rollbacks", 1, fmt.Sprint("step ", i)})
		p.metrics.record(Measure{fmt.Sprint("instrument ", i), 1, ""})
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	got, series := c.Received(), 0
	for _, in := range Instruments {
		if in.Kind == Counter { // all of them are there from the start
			series += max(1, len(in.Values))
		}
	}
	if other, _ := got.Value(Prefix+"rollbacks", "step=other"); other != 100 || len(got.Last()) != series+1 {
		t.Errorf("%v, %d series instead of %d: %s", other, len(got.Last()), series+1, got)
	}
}
