package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"aether.internal/agent/internal/proxy/drain"
)

// Prefix is what every instrument's name starts with.
const Prefix = "atenet.router."

// Instrument is one row of the table in docs/router.md.
type Instrument struct{ Name, Kind, Unit, Attributes, Meaning string }

// Instruments is the table.
var Instruments = []Instrument{
	{"parked", "gauge", "{request}", "pool", "requests that wait for a worker"},
	{"busy", "gauge", "{slot}", "pool", "slots in use"},
	{"slots", "gauge", "{slot}", "pool", "slots there are"},
	{"resumed", "counter", "{request}", "pool", "parked requests that got a worker"},
	{"rejected", "counter", "{request}", "pool, reason", "requests that got none: queue_full, park_timeout, stopping, no_pool, client_left"},
	{"queue.duration", "histogram", "s", "pool", "from parking to resuming"},
	{"config_refused", "counter", "{configuration}", "", "configurations that Envoy refused"},
	{"drain.phase.duration", "histogram", "s", "phase", "how long each phase of the drain took"},
	{"drains", "counter", "{drain}", "envoy", "drains, by why Envoy's part was over: idle, window, gone, restart, unused, skipped"},
}

// Times of parking and of phases: from milliseconds to minutes.
var bounds = metric.WithExplicitBucketBoundaries(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300)

type instruments struct {
	resumed, rejected, drains metric.Int64Counter
	queued, phases            metric.Float64Histogram
}

func newInstruments(m metric.Meter, r *router) (*instruments, error) {
	i := &instruments{}
	var errs [10]error
	i.resumed, errs[0] = m.Int64Counter(Prefix+"resumed", metric.WithUnit("{request}"))
	i.rejected, errs[1] = m.Int64Counter(Prefix+"rejected", metric.WithUnit("{request}"))
	i.drains, errs[2] = m.Int64Counter(Prefix+"drains", metric.WithUnit("{drain}"))
	i.queued, errs[3] = m.Float64Histogram(Prefix+"queue.duration", metric.WithUnit("s"), bounds)
	i.phases, errs[4] = m.Float64Histogram(Prefix+"drain.phase.duration", metric.WithUnit("s"), bounds)
	var parked, busy, slots metric.Int64ObservableGauge
	var refused metric.Int64ObservableCounter
	parked, errs[5] = m.Int64ObservableGauge(Prefix+"parked", metric.WithUnit("{request}"))
	busy, errs[6] = m.Int64ObservableGauge(Prefix+"busy", metric.WithUnit("{slot}"))
	slots, errs[7] = m.Int64ObservableGauge(Prefix+"slots", metric.WithUnit("{slot}"))
	refused, errs[8] = m.Int64ObservableCounter(Prefix+"config_refused", metric.WithUnit("{configuration}"))
	_, errs[9] = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, st := range r.proc.Stats() {
			pool := metric.WithAttributes(attribute.String("pool", name))
			o.ObserveInt64(parked, int64(st.Parked), pool)
			o.ObserveInt64(busy, int64(st.Busy), pool)
			o.ObserveInt64(slots, int64(st.Slots), pool)
		}
		o.ObserveInt64(refused, int64(r.xds.Refused()))
		return nil
	}, parked, busy, slots, refused)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return i, nil
}

// Resumed is extproc.Observer's.
func (i *instruments) Resumed(pool string, waited time.Duration) {
	with := metric.WithAttributes(attribute.String("pool", pool))
	i.resumed.Add(context.Background(), 1, with)
	i.queued.Record(context.Background(), waited.Seconds(), with)
}

// Rejected is extproc.Observer's.
func (i *instruments) Rejected(pool, reason string) {
	i.rejected.Add(context.Background(), 1, metric.WithAttributes(attribute.String("pool", pool), attribute.String("reason", reason)))
}

func (i *instruments) phase(p drain.Phase, took time.Duration) {
	i.phases.Record(context.Background(), took.Seconds(), metric.WithAttributes(attribute.String("phase", string(p))))
}

func (i *instruments) drained(out drain.Outcome) {
	i.drains.Add(context.Background(), 1, metric.WithAttributes(attribute.String("envoy", out.Envoy)))
}
