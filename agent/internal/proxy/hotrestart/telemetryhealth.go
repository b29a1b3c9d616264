package hotrestart

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// health knows whether a collector takes what it is sent. It is told of each
// export, and says so only when that changes: a collector that stays away for a
// day is one line and not 1,440.
type health struct {
	log *slog.Logger

	mu     sync.Mutex
	lost   int       // exports since then, of either kind
	failed time.Time // since when exports fail; zero: they don't
}

func (h *health) exported(ctx context.Context, err error) {
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return // given up for the shutdown, whose own export follows
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil && h.failed.IsZero():
		h.failed, h.lost = time.Now(), 1
		h.log.Warn("telemetry can't be exported; said again when it can", "error", err)
	case err != nil:
		h.lost++
		h.log.Debug("telemetry can't be exported", "error", err)
	case !h.failed.IsZero():
		h.log.Info("telemetry is exported again", "after", time.Since(h.failed).Round(time.Second).String(), "lost", h.lost)
		h.failed = time.Time{}
	}
}

// watchedMetrics keeps an exporter's errors from OTel's global handler, which
// would print each one.
type watchedMetrics struct {
	sdkmetric.Exporter
	health *health
}

// Export never fails: what it could not send is said to health.
func (w watchedMetrics) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	w.health.exported(ctx, w.Exporter.Export(ctx, m))
	return nil
}

// watchedSpans does the same for spans. An export that is under way at the
// shutdown would go on for its own ten seconds: it ends with the pipeline.
type watchedSpans struct {
	sdktrace.SpanExporter
	health *health
	ends   context.Context
}

// ExportSpans never fails: what it could not send is said to health.
func (w watchedSpans) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ends, cancel)()
	w.health.exported(ctx, w.SpanExporter.ExportSpans(ctx, spans))
	return nil
}
