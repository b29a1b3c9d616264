package cmd

import (
	"context"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"google.golang.org/grpc/grpclog"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// openTelemetry returns nothing when nobody wants any, or it can't be had: that
// is no reason for an Envoy not to start.
func openTelemetry(ctx context.Context, cfg hotrestart.TelemetryConfig, lookup func(string) (string, bool)) (*hotrestart.Telemetry, *hotrestart.SupervisorMetrics) {
	if !hotrestart.TelemetryWanted(cfg.OTLPEndpoint, lookup) {
		return nil, nil
	}
	if protocol, _ := lookup("OTEL_EXPORTER_OTLP_PROTOCOL"); protocol != "" && protocol != "grpc" {
		cfg.Log.Warn("telemetry is pushed over gRPC only", "OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
	}
	t, err := hotrestart.NewTelemetry(ctx, cfg)
	if err != nil {
		cfg.Log.Warn("there is no telemetry", "error", err)
		return nil, nil
	}
	metrics, err := hotrestart.NewSupervisorMetrics(t.Meter())
	if err != nil {
		cfg.Log.Warn("there is no telemetry", "error", err)
		return nil, nil
	}
	return t, metrics
}

// quieten sends what the libraries say of themselves to our log: they would
// write lines of their own form to stderr, one for each thing that goes wrong. It
// changes what the whole process shares, so it comes before anything uses them.
func quieten(log *slog.Logger, lookup func(string) (string, bool)) {
	otel.SetLogger(logr.FromSlogHandler(log.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("telemetry", "error", err) }))
	if _, set := lookup("GRPC_GO_LOG_SEVERITY_LEVEL"); !set {
		grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	}
}
