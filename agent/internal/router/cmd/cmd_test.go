package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"aether.internal/agent/internal/proxy/drain"
)

func none(string) (string, bool) { return "", false }

func parse(t *testing.T, env map[string]string, args ...string) (options, drain.Times, error) {
	t.Helper()
	var o options
	f := pflag.NewFlagSet("x", pflag.ContinueOnError)
	o.bind(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	out, err := o.parse(f, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	return o, out.Times, err
}

func TestTheDefaultsAreThoseOfTheHelp(t *testing.T) {
	_, times, err := parse(t, nil)
	if want := (drain.Times{Grace: time.Minute, Delay: 13 * time.Second, Window: 15 * time.Second, Timeout: 27 * time.Second}); err != nil || times != want {
		t.Errorf("%v, %v", times, err)
	}
}

func TestFlagsWinOverVariables(t *testing.T) {
	o, times, err := parse(t, map[string]string{"ATENET_GRACE_PERIOD": "30s", "ATENET_DRAIN_DELAY": "3s", "ATENET_LOG_LEVEL": "debug", "ATENET_MARKER": "", "ATENET_AWAIT_WAITER": "false"}, "--drain-delay", "4s")
	if err != nil || times.Grace != 30*time.Second || times.Delay != 4*time.Second || o.logLevel != "debug" || o.marker == "" || o.awaitWaiter {
		t.Errorf("%+v, %v, %v", o, times, err)
	}
}

func TestUsageErrorsNameTheFlag(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown flag: --x":                        {"--x"},
		"more than the pod's grace period of 1m0s": {"--envoy-drain-window", "50s"},
		"--admin-address: address":                 {"--admin-address", "9901"},
		"--count-listeners: error parsing":         {"--count-listeners", "("},
		"--log-format \"xml\"":                     {"--log-format", "xml"},
		"--log-level \"loud\"":                     {"--log-level", "loud"},
		"invalid argument \"5\" for \"--drain-del": {"--drain-delay", "5"},
		"can't be empty":                           {"--marker", ""},
		"--xds-address":                            {"bootstrap", "--xds-address", "x"},
	} {
		var out, errs bytes.Buffer
		if code := run(args, &out, &errs, none); code != ExitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: exit code %d, %s", args, code, errs.String())
		}
	}
	var out, errs bytes.Buffer
	if code := run(nil, &out, &errs, func(name string) (string, bool) { return "x", name == "ATENET_DRAIN_DELAY" }); code != ExitUsage || !strings.Contains(errs.String(), "ATENET_DRAIN_DELAY: invalid value") {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}

func TestWhatIsMissingIsAnError(t *testing.T) {
	dir := t.TempDir()
	sockets := []string{"--xds-address", "unix:" + filepath.Join(dir, "x"), "--ext-proc-address", "unix:" + filepath.Join(dir, "p"), "--health-address", "unix:" + filepath.Join(dir, "h")}
	for want, args := range map[string][]string{
		"mount a volume there": {"--marker", filepath.Join(dir, "gone", "m"), "--config", os.DevNull},
		"no such file":         {"--marker", filepath.Join(dir, "m"), "--config", filepath.Join(dir, "c.yaml")},
		"no listeners":         {"--marker", filepath.Join(dir, "m"), "--config", os.DevNull},
	} {
		var out, errs bytes.Buffer
		if code := run(append(args, sockets...), &out, &errs, none); code != ExitError || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: exit code %d, %s", args, code, errs.String())
		}
	}
}

func TestBootstrapAndVersion(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run([]string{"bootstrap", "--admin-address", "unix:/a b", "--xds-address", "[::1]:5"}, &out, &errs, none); code != ExitOK {
		t.Fatal(errs.String())
	}
	var b struct {
		Admin struct {
			Address struct{ Pipe struct{ Path string } }
		}
	}
	if err := yaml.Unmarshal(out.Bytes(), &b); err != nil || b.Admin.Address.Pipe.Path != "/a b" {
		t.Errorf("%v: %s", err, out.String())
	}
	out.Reset()
	if code := run([]string{"version"}, &out, &errs, none); code != ExitOK || out.String() != "devel\n" {
		t.Error(code, out.String())
	}
}

func TestInstallWaiter(t *testing.T) {
	image, volume := t.TempDir(), t.TempDir()
	to := filepath.Join(volume, "drain-wait")
	install := func(args ...string) error {
		c := installCommand(func() (string, error) { return filepath.Join(image, "atenet-router"), nil })
		c.SetArgs(args)
		c.SilenceErrors, c.SilenceUsage = true, true
		return c.Execute()
	}
	if err := install(to); err == nil || !strings.Contains(err.Error(), "is this the router's image?") {
		t.Errorf("without a waiter: %v", err)
	}
	if err := os.WriteFile(filepath.Join(image, "drain-wait"), []byte("waiter"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := install(to); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(to); err != nil || string(data) != "waiter" {
		t.Errorf("%q, %v", data, err)
	}
	if fi, err := os.Stat(to); err != nil || fi.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v: Envoy's user is another one", fi.Mode(), err)
	}
	if err := install(); err == nil || !strings.Contains(err.Error(), "where to?") {
		t.Errorf("without a path: %v", err)
	}
}
