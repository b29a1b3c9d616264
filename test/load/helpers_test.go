package load_test

import (
	"context"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/tools/envoy/fetch"
)

// begin starts a load that ends with the test, if not before.
func begin(t *testing.T, p load.Plan) *load.Runner {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	run, err := load.Start(ctx, p)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); run.Stop() })
	return run
}

// until waits for a report that satisfies is.
func until(t *testing.T, run *load.Runner, what string, is func(load.Report) bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		report := run.Snapshot()
		if is(report) {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("waited in vain for: %s\n%s", what, report.Table())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func envoyPath(t *testing.T) string {
	t.Helper()
	path, err := fetch.Path(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var everyKind = []string{
	load.New, load.KeepAlive, load.Stream, load.Upload, load.H2, load.H2Stream, load.GRPC, load.TCP, load.TCPHold,
}

// modest lowers p's rates: both ends are in this process, perhaps with the
// race detector, and other tests run beside it. An open loop that asks for
// more than the machine has ends in nothing but timeouts.
func modest(p load.Plan) {
	for i := range p.Kinds {
		p.Kinds[i].Rate = min(p.Kinds[i].Rate, 15)
	}
}
