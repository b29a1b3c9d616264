package cmd

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/hotrestart"
	"aether.internal/test/collector"
)

func TestTheCollectorReachesTelemetry(t *testing.T) {
	w := newWorld()
	w.env["AETHER_OTLP_ENDPOINT"] = "collector:4317"
	if code := w.main([]string{"proxy-supervisor", "--base-id", "7"}); code != 0 {
		t.Fatal(code, w.err.String())
	}
	if tel := w.telemetry; tel.OTLPEndpoint != "collector:4317" || tel.BaseID != 7 || tel.ServiceVersion != buildVersion().Version || tel.Log == nil {
		t.Errorf("%+v", tel)
	}
}

// Whatever is wrong with telemetry, Envoy starts.
func TestTelemetryStopsNobody(t *testing.T) {
	server, err := collector.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	for _, c := range []struct {
		name string
		env  map[string]string
		want string // in the log
		on   bool
	}{
		{name: "nobody wants it"},
		{name: "another exporter", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector", "OTEL_TRACES_EXPORTER": "zipkin"},
			want: `there is no telemetry" error="telemetry: OTEL_TRACES_EXPORTER=zipkin: there are otlp and none"`},
		{name: "another protocol", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"},
			want: "telemetry is pushed over gRPC only", on: true},
		{name: "attributes that are none", env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector", "OTEL_RESOURCE_ATTRIBUTES": "oops"},
			want: "what can't be read of OTEL_RESOURCE_ATTRIBUTES is left out", on: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, strings.ReplaceAll(v, "http://collector", "http://"+server.Endpoint))
			}
			var log bytes.Buffer
			tel, metrics := openTelemetry(t.Context(), hotrestart.TelemetryConfig{Log: slog.New(slog.NewTextHandler(&log, nil))},
				func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
			if (metrics != nil) != c.on || (tel != nil) != c.on || !strings.Contains(log.String(), c.want) || c.want == "" && log.Len() > 0 {
				t.Errorf("on: %v\n%s", metrics != nil, log.String())
			}
			if err := tel.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
