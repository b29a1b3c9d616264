package hotrestart

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"aether.internal/agent/internal/proxy/control"
)

// tracer makes a trace of each try at a handoff: a root span "handoff" and one
// for each step it came to. Spans are made when their times are known, so that a
// try never waits for them. A parent's release may last hours: it is a span of
// its successor's trace, made when the parent has gone.
type tracer struct {
	tracer   trace.Tracer
	releases map[int]context.Context // by the parent that drains; at most as many as live
}

// newTracer returns nil, which traces nothing, when t is nil.
func newTracer(t trace.Tracer) *tracer {
	if t == nil {
		return nil
	}
	return &tracer{tracer: t, releases: map[int]context.Context{}}
}

// leg is a span that lies within a try.
type leg struct {
	name string
	from time.Time
	to   time.Time
}

// concluded makes the spans of a try; done is when its last action was carried
// out.
func (t *tracer) concluded(h Handoff, done time.Time) {
	if t == nil {
		return
	}
	committed := h.Outcome == control.Committed
	if !committed {
		done = h.At
	}
	ctx, root := t.tracer.Start(context.Background(), "handoff", trace.WithNewRoot(), trace.WithTimestamp(h.Since), trace.WithAttributes(h.attributes()...))
	for _, s := range h.trail(done) {
		_, span := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.from))
		if s.to.Equal(h.FailedAt) && h.Text != "" {
			span.SetStatus(codes.Error, h.Step+": "+limited(h.Text))
		}
		span.End(trace.WithTimestamp(s.to))
	}
	switch h.Outcome {
	case control.Refused, control.Failed:
		root.SetStatus(codes.Error, h.Step+": "+limited(h.Text))
	}
	root.End(trace.WithTimestamp(done))
	if committed && h.From >= 0 {
		t.releases[h.From] = ctx
	}
}

// open are the traces that wait for a release.
func (t *tracer) open() []traceEstate {
	if t == nil {
		return nil
	}
	var all []traceEstate
	for epoch, ctx := range t.releases {
		c := trace.SpanContextFromContext(ctx)
		all = append(all, traceEstate{epoch, c.TraceID().String(), c.SpanID().String(), byte(c.TraceFlags())})
	}
	return all
}

// reopen goes on with those of another program.
func (t *tracer) reopen(all []traceEstate) {
	if t == nil {
		return
	}
	for _, e := range all {
		t.releases[e.Epoch] = trace.ContextWithSpanContext(context.Background(), e.context())
	}
}

func (t *tracer) released(r Released, now time.Time) {
	if t == nil {
		return
	}
	ctx, traced := t.releases[r.Epoch]
	if !traced {
		return
	}
	delete(t.releases, r.Epoch)
	_, span := t.tracer.Start(ctx, "release", trace.WithTimestamp(r.From), trace.WithAttributes(
		attribute.Int("aether.epoch", r.Epoch), attribute.String("aether.reason", r.Why)))
	span.End(trace.WithTimestamp(now))
}

// trail is the steps of a try in their order. A time that is zero is that of a
// step it never came to, or did not need.
func (h *Handoff) trail(done time.Time) []leg {
	var steps []leg
	from := h.Since
	for _, s := range []struct {
		name string
		to   time.Time
	}{
		{"trigger", h.ReadAt}, {"validate", h.validatedAt()}, {"launch", h.ForkedAt}, {"live", h.LiveAt}, {"verify", h.verifiedAt()},
	} {
		if s.to.IsZero() {
			continue
		}
		steps = append(steps, leg{s.name, from, s.to})
		from = s.to
	}
	if h.Outcome == control.Committed {
		return append(steps, leg{"commit", from, done})
	}
	if h.FailedAt.IsZero() || h.LaunchedAt.IsZero() { // refused: validate is the step that failed
		return steps
	}
	return append(steps, leg{h.unfinished(), from, h.FailedAt}, leg{"take back", h.FailedAt, done})
}

// validatedAt is zero for an input that was there already.
func (h *Handoff) validatedAt() time.Time {
	if h.ReadAt.IsZero() {
		return time.Time{}
	}
	return h.ReadyAt
}

// verifiedAt is zero for a newcomer that was not committed.
func (h *Handoff) verifiedAt() time.Time {
	if h.Outcome == control.Committed {
		return h.At
	}
	return time.Time{}
}

// unfinished is the step that a newcomer was in when it was taken back.
func (h *Handoff) unfinished() string {
	switch {
	case h.ForkedAt.IsZero():
		return "launch"
	case h.LiveAt.IsZero():
		return "live"
	}
	return "verify"
}

func (h *Handoff) attributes() []attribute.KeyValue {
	triggers := make([]string, len(h.Triggers))
	for i, t := range h.Triggers {
		triggers[i] = t.String()
	}
	return []attribute.KeyValue{
		attribute.Int("aether.epoch", h.To), attribute.Int("aether.parent_epoch", h.From),
		attribute.StringSlice("aether.triggers", triggers), attribute.String("aether.outcome", h.Outcome),
		attribute.Bool("aether.forced", len(h.Forced) > 0),
	}
}

// limited keeps Envoy's own words, which may be a page, out of a span's status.
func limited(text string) string {
	const most = 400
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "?") // protobuf takes nothing else
}
