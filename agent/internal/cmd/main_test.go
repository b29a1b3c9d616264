package cmd

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"aether.internal/agent/internal/proxy/hotrestart"
	"aether.internal/agent/internal/proxy/process"
)

var update = flag.Bool("update", false, "write the golden files and the tables of docs/reference.md anew")

func TestMain(m *testing.M) { process.Main(m.Run) }

// world is an app whose world is made up, and what came of it.
type world struct {
	app
	out, err  bytes.Buffer
	env       map[string]string
	ran       *hotrestart.Config // what the supervisor was run with
	telemetry hotrestart.TelemetryConfig
	level     *slog.LevelVar
	result    error // what it returns
}

func newWorld() *world {
	w := &world{env: map[string]string{}}
	w.app = app{
		stdout: &w.out, stderr: &w.err,
		terminal:   func(io.Writer) bool { return false },
		lookupEnv:  func(name string) (string, bool) { v, ok := w.env[name]; return v, ok },
		executable: func() (string, error) { return "/nonexistent/agent", nil },
		places:     places{euid: 0, runtimeDir: func() string { return "" }, write: func(string, []byte) error { return nil }},
		supervise: func(_ context.Context, cfg hotrestart.Config, tel hotrestart.TelemetryConfig, _ *slog.Logger) error {
			w.level, cfg.LogLevel, cfg.FlushLog = cfg.LogLevel, nil, nil // which no two runs share
			w.ran, w.telemetry = &cfg, tel
			return w.result
		},
	}
	return w
}

// golden compares got with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew); got:\n%s\nwant:\n%s", name, got, want)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
