package collector

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Received is what a collector was sent.
type Received struct {
	Exports  []*metrics.ResourceMetrics // in their order
	Spans    []*spans.Span
	Resource *resource.Resource // of the last export of either kind
}

// Point is one series of an export.
type Point struct {
	Name, Unit string
	Attributes string  // "key=value,…"
	Value      float64 // of a counter or gauge; a histogram's count
	Sum        float64 // of a histogram
}

// Last are the series of the newest metrics export, by name and attributes.
func (r *Received) Last() []Point {
	if len(r.Exports) == 0 {
		return nil
	}
	var points []Point
	for _, scope := range r.Exports[len(r.Exports)-1].ScopeMetrics {
		for _, m := range scope.Metrics {
			points = append(points, pointsOf(m)...)
		}
	}
	slices.SortFunc(points, func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Attributes, b.Attributes))
	})
	return points
}

// Value is a series' value in the newest export; false when it isn't there.
func (r *Received) Value(name, attributes string) (float64, bool) {
	for _, p := range r.Last() {
		if p.Name == name && p.Attributes == attributes {
			return p.Value, true
		}
	}
	return 0, false
}

func pointsOf(m *metrics.Metric) []Point {
	var points []Point
	number := func(all []*metrics.NumberDataPoint) {
		for _, p := range all {
			points = append(points, Point{Name: m.Name, Unit: m.Unit, Attributes: text(p.Attributes), Value: float64(p.GetAsInt()) + p.GetAsDouble()})
		}
	}
	number(m.GetSum().GetDataPoints())
	number(m.GetGauge().GetDataPoints())
	for _, p := range m.GetHistogram().GetDataPoints() {
		points = append(points, Point{Name: m.Name, Unit: m.Unit, Attributes: text(p.Attributes), Value: float64(p.Count), Sum: p.GetSum()})
	}
	return points
}

func text(attributes []*common.KeyValue) string {
	var all []string
	for _, a := range attributes {
		all = append(all, a.Key+"="+value(a.Value))
	}
	slices.Sort(all)
	return strings.Join(all, ",")
}

func value(v *common.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	case *common.AnyValue_ArrayValue:
		var all []string
		for _, e := range v.ArrayValue.GetValues() {
			all = append(all, value(e))
		}
		return strings.Join(all, " ")
	}
	return v.String()
}

// Attribute is a resource's or a span's attribute as text, "" when it has none.
func Attribute(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key == key {
			return value(a.Value)
		}
	}
	return ""
}

// Traces are the spans by trace, each in the order of their starts, the trace
// that began first first.
func (r *Received) Traces() [][]*spans.Span {
	byID := map[string][]*spans.Span{}
	for _, s := range r.Spans {
		byID[string(s.TraceId)] = append(byID[string(s.TraceId)], s)
	}
	var traces [][]*spans.Span
	for _, t := range byID {
		slices.SortStableFunc(t, func(a, b *spans.Span) int {
			return cmp.Or(cmp.Compare(len(a.ParentSpanId), len(b.ParentSpanId)), // the root first
				cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), cmp.Compare(a.EndTimeUnixNano, b.EndTimeUnixNano))
		})
		traces = append(traces, t)
	}
	slices.SortFunc(traces, func(a, b []*spans.Span) int { return cmp.Compare(a[0].StartTimeUnixNano, b[0].StartTimeUnixNano) })
	return traces
}

// Names are those of a trace's spans.
func Names(trace []*spans.Span) []string {
	var names []string
	for _, s := range trace {
		names = append(names, s.Name)
	}
	return names
}

// String shows resource, newest metrics and traces, as the documentation does.
func (r *Received) String() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "resource\n")
	for _, a := range r.Resource.GetAttributes() {
		fmt.Fprintf(&b, "  %s=%s\n", a.Key, value(a.Value))
	}
	fmt.Fprintf(&b, "metrics\n")
	for _, p := range r.Last() {
		fmt.Fprintf(&b, "  %s{%s} %g", p.Name, p.Attributes, p.Value)
		if p.Unit == "s" {
			fmt.Fprintf(&b, " (sum %.3f s)", p.Sum)
		}
		b.WriteByte('\n')
	}
	for _, trace := range r.Traces() {
		fmt.Fprintf(&b, "trace %x\n", trace[0].TraceId[:4])
		for _, s := range trace {
			indent := "  "
			if len(s.ParentSpanId) > 0 {
				indent = "    "
			}
			at := time.Duration(s.StartTimeUnixNano - trace[0].StartTimeUnixNano)
			took := time.Duration(s.EndTimeUnixNano - s.StartTimeUnixNano)
			fmt.Fprintf(&b, "%s%-9s +%.1f ms, %.1f ms", indent, s.Name, at.Seconds()*1000, took.Seconds()*1000)
			if attributes := text(s.Attributes); attributes != "" {
				fmt.Fprintf(&b, "  {%s}", attributes)
			}
			if s.Status.GetMessage() != "" {
				fmt.Fprintf(&b, "  error: %s", s.Status.GetMessage())
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
