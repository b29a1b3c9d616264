package cmd

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// flagNames are those of proxy-supervisor, in the order of its help.
func flagNames() []string {
	var names []string
	var o supervisorOptions
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.bind(f)
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	return names
}

// checkOutcome: the supervisor runs with what Check accepts, or doesn't run, and
// then one line says why.
func checkOutcome(t *testing.T, w *world, code int, what string) {
	t.Helper()
	switch told := w.err.String(); {
	case w.ran != nil:
		if code != 0 || !possible(*w.ran) {
			t.Errorf("%s: code %d, and it ran with what can't work: %+v", what, code, *w.ran)
		}
	case code == 0 && w.out.Len() > 0: // help
	case code == hotrestart.ExitUnexpected && strings.Contains(told, "not ready: "): // --readiness-check
	case code == hotrestart.ExitUnexpected && strings.Contains(told, ": --install-") && strings.Contains(told, "/nonexistent/"):
	case code == hotrestart.ExitBinary && strings.Contains(told, "is in none of PATH's directories"):
	case code != hotrestart.ExitUsage || !strings.HasPrefix(told, "agent") || !strings.Contains(told, ": "):
		t.Errorf("%s: code %d, %q", what, code, told)
	}
}

// possible says what Check has to have made sure of, in other words.
func possible(c hotrestart.Config) bool {
	for _, path := range []string{c.EnvoyPath, c.ConfigPath, c.StateDir, c.ReadyMarkerPath, c.ControlSocket} {
		if !filepath.IsAbs(path) {
			return false
		}
	}
	seconds := func(d time.Duration) bool {
		return d == d.Truncate(time.Second) && d >= time.Second && d < 20*365*24*time.Hour
	}
	return seconds(c.DrainTime) && seconds(c.ParentShutdownTime) && c.ParentShutdownTime > c.DrainTime &&
		c.HandoffDeadline > 0 && c.Concurrency >= 0 && c.BaseID <= 214748364 && len(c.ControlSocket) <= 107 &&
		slices.Contains([]string{hotrestart.ValidateAlways, hotrestart.ValidateChanges, hotrestart.ValidateNever}, c.Validate)
}

// A value in the environment is what it is as a flag.
func FuzzEnvironment(f *testing.F) {
	names := flagNames()
	for i, name := range names {
		for _, value := range []string{"", "1", "true", "15s", "/x", "unix:/x", "info"} {
			if value == "15s" == strings.Contains(name, "time") || value == "" {
				f.Add(uint8(i), value)
			}
		}
	}
	for _, value := range []string{"-1", "1e3", "0x10", "214748365", "99999999999h", "0.5s", "\n-l\n\ninfo\n", "\x00", "a\xff"} {
		for i := range names {
			f.Add(uint8(i), value)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, value string) {
		name := names[int(which)%len(names)]
		env, flag := newWorld(), newWorld()
		env.env[envName(name)] = value
		code := env.main([]string{"proxy-supervisor"})
		checkOutcome(t, env, code, name+" from the environment")
		if env.ran == nil && code == hotrestart.ExitUsage && !strings.Contains(env.err.String(), name) && !strings.Contains(env.err.String(), envName(name)) {
			t.Errorf("%s=%q is refused without its name: %s", envName(name), value, env.err.String())
		}
		if value == "" || name == "envoy-arg" { // not set; a line each
			return
		}
		asFlag := flag.main([]string{"proxy-supervisor", "--" + name + "=" + value})
		checkOutcome(t, flag, asFlag, "--"+name)
		if code != asFlag || !reflect.DeepEqual(env.ran, flag.ran) {
			t.Errorf("%s=%q: code %d, %+v; as a flag %d, %+v", name, value, code, env.ran, asFlag, flag.ran)
		}
	})
}

func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		"", "--base-id\n7", "--\n-l\ninfo", "--\ninfo", "--\n/e\n-c\n/c", "--\n/e\n--config-yaml\n{}", "x", "--help", "-h", "--drain-time=2s\n--parent-shutdown-time=1s", "--relay=maybe",
		"--envoy-arg\n-l\n--envoy-arg=info", "--state-dir=" + strings.Repeat("x", 120), "--config=/a\n--ready-marker=/a/../a", "---", "--=", "-\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, joined string) {
		args := []string{"proxy-supervisor"}
		if joined != "" {
			args = append(args, strings.Split(joined, "\n")...)
		}
		w := newWorld()
		checkOutcome(t, w, w.main(args), joined)
	})
}
