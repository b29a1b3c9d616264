package hotrestart

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/exemplar"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// TelemetryConfig configures the supervisor's telemetry pipeline.
type TelemetryConfig struct {
	// OTLPEndpoint is the OTLP gRPC collector that metrics and traces are pushed
	// to: host:port (insecure), or a URL whose scheme http or https decides about
	// TLS. Empty: OTEL_EXPORTER_OTLP_ENDPOINT and its like name it. There is no
	// scrape port: in the host's network namespace those of two pods on one node
	// would collide.
	OTLPEndpoint string

	// ServiceName is the resource's service.name unless OTEL_SERVICE_NAME says
	// otherwise; "" is the supervisor's.
	ServiceName string

	// ServiceVersion is the build version recorded on the OTel resource.
	ServiceVersion string

	// BaseID tells supervisors of one host or pod apart.
	BaseID uint32

	// Log is told when exports begin to fail and when they succeed again. nil:
	// nobody is.
	Log *slog.Logger
}

// Telemetry is the supervisor's pipeline: plain OTel SDK providers that push to
// a collector over OTLP gRPC in the background. A nil *Telemetry, as one that
// OTEL_SDK_DISABLED has switched off, takes everything and sends nothing.
type Telemetry struct {
	meters  *sdkmetric.MeterProvider // nil: off
	tracers *sdktrace.TracerProvider // nil: off
	stop    context.CancelFunc       // ends what the shutdown left under way
}

// scope names who measures.
const scope = "aether.internal/agent/internal/proxy/hotrestart"

// shutdownTime is what a collector may delay the exit.
const shutdownTime = 2 * time.Second

// The kinds of telemetry, as OpenTelemetry's variables name them.
const (
	metricsKind = "METRICS"
	tracesKind  = "TRACES"
)

// TelemetryWanted tells whether the environment or the configuration names a
// collector. Where none is, nothing is set up and nothing runs.
func TelemetryWanted(endpoint string, lookup func(string) (string, bool)) bool {
	return hasCollector(metricsKind, endpoint, lookup) || hasCollector(tracesKind, endpoint, lookup)
}

func hasCollector(kind, endpoint string, lookup func(string) (string, bool)) bool {
	all, _ := lookup("OTEL_EXPORTER_OTLP_ENDPOINT")
	its, _ := lookup("OTEL_EXPORTER_OTLP_" + kind + "_ENDPOINT")
	return endpoint != "" || all != "" || its != ""
}

// exports tells whether a kind is to be exported.
func (cfg TelemetryConfig) exports(kind string) (bool, error) {
	variable := "OTEL_" + kind + "_EXPORTER"
	switch v := os.Getenv(variable); v {
	case "", "otlp":
		return hasCollector(kind, cfg.OTLPEndpoint, os.LookupEnv), nil
	case "none":
		return false, nil
	default:
		return false, fmt.Errorf("%s=%s: there are otlp and none", variable, v)
	}
}

// NewTelemetry builds the pipeline. It connects to nobody and waits for nothing:
// a collector may come later. It fails when an address can't be one, or the
// environment asks for an exporter other than otlp and none.
func NewTelemetry(ctx context.Context, cfg TelemetryConfig) (*Telemetry, error) {
	if disabled := os.Getenv("OTEL_SDK_DISABLED"); strings.EqualFold(disabled, "true") {
		return &Telemetry{}, nil
	}
	address, err := parseEndpoint(cfg.OTLPEndpoint)
	if err != nil {
		return nil, err
	}
	if !TelemetryWanted(cfg.OTLPEndpoint, os.LookupEnv) {
		return nil, errors.New("telemetry: no collector: give an OTLP endpoint, or OTEL_EXPORTER_OTLP_ENDPOINT")
	}
	metrics, err1 := cfg.exports(metricsKind)
	traces, err2 := cfg.exports(tracesKind)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	log := cfg.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	res, err := newResource(ctx, cfg)
	if err != nil {
		log.Warn("telemetry: what can't be read of OTEL_RESOURCE_ATTRIBUTES is left out", "error", err)
		err = nil
	}
	exports, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &Telemetry{stop: stop}
	h := &health{log: log}
	if metrics {
		err = t.openMeters(exports, address, res, h)
	}
	if traces && err == nil {
		err = t.openTracers(exports, address, res, h)
	}
	if err != nil {
		_ = t.Shutdown(ctx)
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	return t, nil
}

func (t *Telemetry) openMeters(ctx context.Context, a address, res *resource.Resource, h *health) error {
	exporter, err := otlpmetricgrpc.New(ctx, a.metricOptions()...)
	if err != nil {
		return err
	}
	options := []sdkmetric.Option{
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(watchedMetrics{exporter, h})), sdkmetric.WithResource(res),
	}
	if _, set := os.LookupEnv("OTEL_METRICS_EXEMPLAR_FILTER"); !set {
		// No measurement is made within a span: they would only take memory.
		options = append(options, sdkmetric.WithExemplarFilter(exemplar.AlwaysOffFilter))
	}
	t.meters = sdkmetric.NewMeterProvider(options...)
	return nil
}

func (t *Telemetry) openTracers(ctx context.Context, a address, res *resource.Resource, h *health) error {
	exporter, err := otlptracegrpc.New(ctx, a.traceOptions()...)
	if err != nil {
		return err
	}
	t.tracers = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(watchedSpans{exporter, h, ctx}, spanQueue()...), sdktrace.WithResource(res))
	return nil
}

// spanQueue holds a hundred handoffs, which is more than any collector should
// miss; the SDK's own 2,048 would lie there for nothing.
func spanQueue() []sdktrace.BatchSpanProcessorOption {
	if _, set := os.LookupEnv("OTEL_BSP_MAX_QUEUE_SIZE"); set {
		return nil
	}
	return []sdktrace.BatchSpanProcessorOption{sdktrace.WithMaxQueueSize(1024), sdktrace.WithMaxExportBatchSize(256)}
}

// Meter is where NewSupervisorMetrics registers its instruments.
func (t *Telemetry) Meter() metric.Meter {
	if t == nil || t.meters == nil {
		return metricnoop.NewMeterProvider().Meter(scope)
	}
	return t.meters.Meter(scope)
}

// Tracer is what Config.Tracer wants.
func (t *Telemetry) Tracer() trace.Tracer {
	if t == nil || t.tracers == nil {
		return tracenoop.NewTracerProvider().Tracer(scope)
	}
	return t.tracers.Tracer(scope)
}

// Flush exports what there is until now, metrics and spans at once, within two
// seconds.
func (t *Telemetry) Flush(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	var both sync.WaitGroup
	if t.tracers != nil {
		both.Go(func() { _ = t.tracers.ForceFlush(ctx) }) // joined below
	}
	if t.meters != nil {
		_ = t.meters.ForceFlush(ctx)
	}
	both.Wait()
}

// Shutdown exports what there still is, metrics and spans at once, and ends the
// pipeline. It takes two seconds at most, whatever the collector does; its error
// says that something may not have arrived.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	if t == nil || t.stop == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, shutdownTime)
	defer cancel()
	defer t.stop()
	spans := make(chan error, 1)
	go func() { // joined below
		if t.tracers == nil {
			spans <- nil
			return
		}
		spans <- t.tracers.Shutdown(ctx)
	}()
	var err error
	if t.meters != nil {
		err = t.meters.Shutdown(ctx)
	}
	return errors.Join(err, <-spans)
}
