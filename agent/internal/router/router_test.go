package router

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"aether.internal/agent/internal/proxy/drain"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/router/config"
	"aether.internal/agent/internal/router/extproc"
	"aether.internal/agent/internal/router/xds"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const minimal = `listeners: [{name: a, address: "127.0.0.1:1", routes: [{pool: w}]}]
pools: [{name: w, workers: [{address: "127.0.0.1:2"}]}]
`

// options of a router whose Envoy isn't there.
func testOptions(t *testing.T) Options {
	t.Helper()
	dir, err := os.MkdirTemp("", "rt") // short: sockets lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := func(name string) envoy.Address { return envoy.Address{Path: filepath.Join(dir, name)} }
	o := Options{
		Config: filepath.Join(dir, "c.yaml"), Admin: at("admin"), XDS: at("xds"), ExtProc: at("proc"), Health: at("health"),
		Marker: filepath.Join(dir, "drain-complete"), Meter: noop.NewMeterProvider().Meter("x"), Log: slog.New(slog.DiscardHandler),
		Times: drain.Times{Grace: time.Minute, Delay: 30 * time.Second, Window: time.Second, Timeout: time.Second},
	}
	if err := os.WriteFile(o.Config, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// ask asks the health server, until it answers.
func ask(t *testing.T, o Options, path string) (int, string) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", o.Health.Path)
	}}}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		answer, err := client.Get("http://x" + path)
		if err == nil {
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			return answer.StatusCode, strings.TrimSpace(string(body))
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Stopped before Envoy has ever come: at once, and with a marker.
func TestAStopBeforeReady(t *testing.T) {
	o := testOptions(t)
	stale := os.WriteFile(o.Marker, nil, 0o600)
	stop, cancel := context.WithCancel(t.Context())
	over := make(chan error, 1)
	go func() { over <- Run(stop, context.Background(), o) }() // joined below
	if code, _ := ask(t, o, "/healthz"); code != http.StatusOK || stale != nil {
		t.Error(code, stale)
	}
	if code, why := ask(t, o, "/readyz"); code != http.StatusServiceUnavailable || why != "Envoy's admin has not answered yet" {
		t.Error(code, why)
	}
	if _, status := ask(t, o, "/statusz"); !strings.Contains(status, `"w":{"workers":1,"slots":1,"busy":0,"parked":0}`) {
		t.Error(status)
	}
	if _, err := os.Stat(o.Marker); err == nil {
		t.Error("a stale marker stays")
	}
	began := time.Now()
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("after %v: it has waited for its delay", took)
	}
	if _, err := os.Stat(o.Marker); err != nil {
		t.Error(err)
	}
}

func TestAnAddressThatIsTakenIsAnError(t *testing.T) {
	o := testOptions(t)
	l, err := net.Listen("unix", o.ExtProc.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := Run(t.Context(), t.Context(), o); err == nil || !strings.Contains(err.Error(), "ext_proc server: somebody listens at") {
		t.Error(err)
	}
}

// What a killed router has left is nobody's.
func TestAStaleSocketIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	old, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	old.SetUnlinkOnClose(false)
	old.Close()
	l, err := listenAt(envoy.Address{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

// The table of instruments is what is registered.
func TestInstruments(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	o := testOptions(t)
	r := &router{o: o, log: o.Log}
	var err error
	if r.metrics, err = newInstruments(provider.Meter("x"), r); err != nil {
		t.Fatal(err)
	}
	r.proc, r.xds = extproc.New(r.metrics, o.Log), xds.New(o.ExtProc, o.Log)
	defer r.xds.Stop()
	c, err := config.Load(o.Config)
	if err == nil {
		err = r.apply(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.metrics.Resumed("w", time.Second)
	r.metrics.Rejected("w", extproc.ReasonFull)
	r.metrics.drained(drain.Outcome{Envoy: drain.Idle})
	r.observe(drain.Status{Phase: drain.Delaying, Since: time.Now()})
	r.observe(drain.Status{Phase: drain.Draining, Since: time.Now()})
	var data metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			got[m.Name] = kind(m.Data) + " " + m.Unit
		}
	}
	want := map[string]string{}
	for _, i := range Instruments {
		want[Prefix+i.Name] = i.Kind + " " + i.Unit
	}
	if !maps.Equal(got, want) {
		t.Errorf("registered %v\ntable %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func kind(data metricdata.Aggregation) string {
	switch data.(type) {
	case metricdata.Sum[int64]:
		return "counter"
	case metricdata.Gauge[int64]:
		return "gauge"
	case metricdata.Histogram[float64]:
		return "histogram"
	}
	return fmt.Sprintf("%T", data)
}
