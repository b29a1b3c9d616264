package cmd

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// A command line that stood in a manifest becomes the same configuration as the
// supervisor's own flags.
func TestAnEnvoyCommandLineIsAdopted(t *testing.T) {
	base := newWorld()
	base.main([]string{"proxy-supervisor"})
	for line, want := range map[string]func(*hotrestart.Config){
		"/bin/envoy -c /c.yaml": func(c *hotrestart.Config) { c.ConfigPath = "/c.yaml" },
		"/bin/envoy -l info --concurrency 2": func(c *hotrestart.Config) {
			c.ExtraArgs = []string{"-l", "info", "--concurrency", "2"}
		},
		"/bin/envoy --service-node n -c /c.yaml --base-id 3 --drain-time-s 5 --parent-shutdown-time-s 9 --restart-epoch 0": func(c *hotrestart.Config) {
			c.ConfigPath, c.BaseID, c.DrainTime, c.ParentShutdownTime = "/c.yaml", 3, 5*time.Second, 9*time.Second
			c.ExtraArgs = []string{"--service-node", "n"}
		},
	} {
		w := newWorld()
		code := w.main(append([]string{"proxy-supervisor", "--"}, strings.Fields(line)...))
		cfg := *base.ran
		cfg.EnvoyPath = "/bin/envoy"
		want(&cfg)
		if code != 0 || !reflect.DeepEqual(*w.ran, cfg) {
			t.Errorf("%s: exit code %d, %s\ngot  %+v\nwant %+v", line, code, w.err.String(), w.ran, cfg)
		}
	}
}

// The same said twice is no contradiction.
func TestAnAdoptedFlagMayBeRepeated(t *testing.T) {
	w := newWorld()
	w.env["AETHER_BASE_ID"] = "3"
	w.env["AETHER_ENVOY_ARG"] = "--service-zone\nz"
	code := w.main(strings.Fields("proxy-supervisor --config /c -- /e -c /c --base-id 3 -l info"))
	if code != 0 || w.ran.BaseID != 3 || w.ran.ConfigPath != "/c" || !reflect.DeepEqual(w.ran.ExtraArgs, []string{"--service-zone", "z", "-l", "info"}) {
		t.Errorf("exit code %d, %+v %s", code, w.ran, w.err.String())
	}
}

func TestAnAdoptedProgramIsLookedForInPath(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"envoy": 0o755, "text": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld()
	w.env["PATH"] = "/nowhere:" + dir
	if code := w.main([]string{"proxy-supervisor", "--", "envoy"}); code != 0 || w.ran.EnvoyPath != filepath.Join(dir, "envoy") {
		t.Errorf("exit code %d, %+v %s", code, w.ran, w.err.String())
	}
	w = newWorld()
	w.env["PATH"] = dir
	if code := w.main([]string{"proxy-supervisor", "--", "text"}); code != hotrestart.ExitBinary || !strings.Contains(w.err.String(), `"text" is in none of PATH's directories`) {
		t.Errorf("exit code %d, %s", code, w.err.String())
	}
}

// A bootstrap within the command line becomes a file, private to us.
func TestAnInlineBootstrapBecomesAFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	w := newWorld()
	w.places.write = writePrivate
	code := w.main([]string{"proxy-supervisor", "--control-socket", filepath.Join(dir, "c.sock"), "--", "/e", "--config-yaml", "admin: {}"})
	if code != 0 || w.ran.ConfigPath != filepath.Join(dir, "bootstrap.yaml") {
		t.Fatalf("exit code %d, %+v %s", code, w.ran, w.err.String())
	}
	data, err := os.ReadFile(w.ran.ConfigPath)
	if err != nil || string(data) != "admin: {}" {
		t.Errorf("%q, %v", data, err)
	}
	if fi, err := os.Stat(w.ran.ConfigPath); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: it may have secrets", fi.Mode(), err)
	}
	w = newWorld()
	w.places.write = func(string, []byte) error { return os.ErrPermission }
	if code := w.main([]string{"proxy-supervisor", "--", "/e", "--config-yaml", "{}"}); code == 0 || !strings.Contains(w.err.String(), "--config-yaml of Envoy's command line: permission denied") {
		t.Errorf("exit code %d, %s", code, w.err.String())
	}
}
