package hotrestart

import (
	"context"
	"fmt"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// SupervisorMetrics holds the hot-restart lifecycle instruments, those of the
// table Instruments. All methods are nil-receiver-safe, so that the supervisor
// runs unchanged without telemetry. Recording never blocks.
type SupervisorMetrics struct {
	recorders map[string]recorder

	// What the gauges have now; the owner's.
	epoch, generations int
}

// recorder takes a value with its instrument's one attribute.
type recorder func(value float64, label string)

// nothing is what a gauge has that was never recorded.
const nothing = -2

// NewSupervisorMetrics registers the supervisor instruments on the given meter.
func NewSupervisorMetrics(meter metric.Meter) (*SupervisorMetrics, error) {
	m := &SupervisorMetrics{recorders: map[string]recorder{}, epoch: nothing, generations: nothing}
	for _, in := range Instruments {
		r, err := in.register(meter)
		if err != nil {
			return nil, fmt.Errorf("instrument %s%s: %w", Prefix, in.Name, err)
		}
		m.recorders[in.Name] = r
		in.zero(r)
	}
	return m, nil
}

// zero makes a counter's series before it counts: one that begins with 1 has, for
// whoever asks for its increase, never increased.
func (in Instrument) zero(r recorder) {
	if in.Kind != Counter {
		return
	}
	if in.Key == "" {
		r(0, "")
	}
	for _, label := range in.Values {
		r(0, label)
	}
}

func (in Instrument) register(meter metric.Meter) (recorder, error) {
	ctx := context.Background() // nothing below waits for anything
	name := Prefix + in.Name
	unit, what := metric.WithUnit(in.Unit), metric.WithDescription(in.Meaning)
	switch in.Kind {
	case Counter:
		c, err := meter.Int64Counter(name, unit, what)
		return func(v float64, label string) { c.Add(ctx, int64(v), in.attribute(label)) }, err
	case Gauge:
		g, err := meter.Int64Gauge(name, unit, what)
		return func(v float64, label string) { g.Record(ctx, int64(v), in.attribute(label)) }, err
	}
	h, err := meter.Float64Histogram(name, unit, what, metric.WithExplicitBucketBoundaries(in.bounds...))
	return func(v float64, label string) { h.Record(ctx, v, in.attribute(label)) }, err
}

// attribute keeps the number of series bounded, whatever the core says: each one
// costs memory here and in every collector behind.
func (in Instrument) attribute(label string) metric.MeasurementOption {
	if in.Key == "" {
		return metric.WithAttributeSet(attribute.Set{})
	}
	if !slices.Contains(in.Values, label) {
		label = "other"
	}
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(in.Key, label)))
}

func (m *SupervisorMetrics) record(x Measure) {
	if m == nil {
		return
	}
	if r := m.recorders[x.Name]; r != nil {
		r(x.Value, x.Label)
	}
}

// lives records who lives and serves, when that has changed; serving is -1 for
// nobody. To be called by the owner only.
func (m *SupervisorMetrics) lives(generations, serving int) {
	if m == nil {
		return
	}
	if generations != m.generations {
		m.generations = generations
		m.record(Measure{"generations", float64(generations), ""})
	}
	if serving != m.epoch {
		m.epoch = serving
		m.record(Measure{"epoch", float64(serving), ""})
	}
}
