package hotrestart

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/test/collector"
)

// A collector of any kind delays neither what is recorded nor the end, and is
// worth one line.
func TestABadCollectorDelaysNothing(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	answer := func(f func(context.Context) error) func(*testing.T) string {
		return func(t *testing.T) string {
			c, err := collector.Start()
			if err != nil {
				t.Fatal(err)
			}
			c.Answer = f
			t.Cleanup(c.Close)
			return c.Endpoint
		}
	}
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
	t.Setenv("OTEL_METRIC_EXPORT_TIMEOUT", "200")
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
	for name, start := range map[string]func(*testing.T) string{
		"absent":       absent,
		"black-holed":  blackHole,
		"slow":         answer(hang),
		"refusing":     answer(func(context.Context) error { return status.Error(codes.PermissionDenied, "go away") }),
		"overloaded":   answer(func(context.Context) error { return status.Error(codes.ResourceExhausted, "later") }),
		"broken":       answer(func(context.Context) error { return errors.New("boom") }),
		"no such name": func(*testing.T) string { return "collector.invalid:4317" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each takes its two seconds
			endpoint := start(t)
			began := time.Now()
			p := openPipeline(t, endpoint)
			tr := newTracer(p.Tracer())
			for range 2_000 {
				p.metrics.record(Measure{"restart_triggers", 1, "signal"})
				tr.concluded(Handoff{Outcome: control.Refused, Since: began, FailedAt: began, At: began}, began)
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("recording took %v", took)
			}
			awaitWarning(t, p.log)
			began = time.Now()
			_ = p.Shutdown(t.Context())
			if took := time.Since(began); took > shutdownTime+time.Second {
				t.Errorf("the end took %v", took)
			}
			if lines := strings.Count(p.log.String(), "\n"); lines != 1 {
				t.Errorf("%d lines of log, want one:\n%s", lines, p.log)
			}
		})
	}
}

// awaitWarning returns when an export has failed, so that what follows meets a
// pipeline that knows.
func awaitWarning(t *testing.T, log *lockedBuffer) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(log.String(), "telemetry can't be exported; said again when it can") {
		if time.Now().After(deadline) {
			t.Fatalf("no failure was logged: %s", log)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// absent is a port that nobody listens on.
func absent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// blackHole takes connections and never says a word.
func blackHole(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

func TestACollectorThatComesBackIsSaid(t *testing.T) {
	t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", "20")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	var mu sync.Mutex
	refused := 0
	c, err := collector.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.Answer = func(context.Context) error {
		mu.Lock()
		defer mu.Unlock()
		if refused++; refused <= 3 {
			return status.Error(codes.Internal, "not yet")
		}
		return nil
	}
	p := openPipeline(t, c.Endpoint)
	p.metrics.record(Measure{"rollbacks", 1, "start"})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := c.Await(ctx, func(r *collector.Received) bool { return len(r.Exports) > 3 }); err != nil {
		t.Fatal(err)
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	var said []string
	for line := range strings.Lines(p.log.String()) {
		_, msg, _ := strings.Cut(line, "msg=")
		said = append(said, msg[:min(len(msg), 30)])
	}
	if want := []string{`"telemetry can't be exported; s`, `"telemetry is exported again" `}; len(said) != 2 || said[0][:20] != want[0][:20] || said[1][:20] != want[1][:20] || !strings.Contains(p.log.String(), "lost=3") {
		t.Errorf("logged:\n%s", p.log)
	}
}
