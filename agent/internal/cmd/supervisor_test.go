package cmd

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/hotrestart"
	"aether.internal/agent/internal/proxy/process"
)

func TestDefaultsReachTheSupervisor(t *testing.T) {
	w := newWorld()
	if code := w.main([]string{"proxy-supervisor"}); code != 0 || w.ran == nil {
		t.Fatal(code, w.err.String())
	}
	want := hotrestart.Config{
		EnvoyPath: "/usr/local/bin/envoy", ConfigPath: "/etc/envoy/envoy.yaml",
		DrainTime: 25 * time.Second, ParentShutdownTime: 40 * time.Second, HandoffDeadline: 2 * time.Minute, AdminUnresponsiveDeadline: 30 * time.Second,
		WatchConfig: true, Validate: "always", Version: buildVersion().Version,
		StateDir: "/run/aether/hotrestart", ReadyMarkerPath: "/var/run/aether-proxy/ready", ControlSocket: "/var/run/aether-proxy/control.sock",
	}
	if !reflect.DeepEqual(*w.ran, want) {
		t.Errorf("got  %+v\nwant %+v", *w.ran, want)
	}
}

// Each flag, and each variable, changes its own field and no other.
func TestFlagsAndVariables(t *testing.T) {
	base := newWorld()
	base.main([]string{"proxy-supervisor"})
	for _, c := range []struct {
		flag, value string
		want        func(*hotrestart.Config)
	}{
		{"envoy-path", "/e", func(c *hotrestart.Config) { c.EnvoyPath = "/e" }},
		{"config", "/c", func(c *hotrestart.Config) { c.ConfigPath = "/c" }},
		{"base-id", "214748364", func(c *hotrestart.Config) { c.BaseID = 214748364 }},
		{"envoy-arg", "-l", func(c *hotrestart.Config) { c.ExtraArgs = []string{"-l"} }},
		{"concurrency", "3", func(c *hotrestart.Config) { c.Concurrency = 3 }},
		{"admin-address", "unix:/a", func(c *hotrestart.Config) { c.AdminAddress = "unix:/a" }},
		{"watch-config", "false", func(c *hotrestart.Config) { c.WatchConfig = false }},
		{"drain-time", "1s", func(c *hotrestart.Config) { c.DrainTime = time.Second }},
		{"parent-shutdown-time", "3h", func(c *hotrestart.Config) { c.ParentShutdownTime = 3 * time.Hour }},
		{"admin-unresponsive-deadline", "45s", func(c *hotrestart.Config) { c.AdminUnresponsiveDeadline = 45 * time.Second }},
		{"handoff-deadline", "1500ms", func(c *hotrestart.Config) { c.HandoffDeadline = 1500 * time.Millisecond }},
		{"validate", "never", func(c *hotrestart.Config) { c.Validate = hotrestart.ValidateNever }},
		{"verify-command", "check it", func(c *hotrestart.Config) { c.VerifyCommand = "check it" }},
		{"relay", "false", func(c *hotrestart.Config) { c.NoRelay = true }},
		{"admin-per-epoch", "true", func(c *hotrestart.Config) { c.AdminPerEpoch = true }},
		{"segment-repair", "false", func(c *hotrestart.Config) { c.NoSegmentRepair = true }},
		{"grace-period", "90s", func(c *hotrestart.Config) { c.GracePeriod = 90 * time.Second }},
		{"state-dir", "/s", func(c *hotrestart.Config) { c.StateDir = "/s" }},
		{"ready-marker", "/r", func(c *hotrestart.Config) { c.ReadyMarkerPath = "/r" }},
		{"control-socket", "/x", func(c *hotrestart.Config) { c.ControlSocket = "/x" }},
	} {
		want := *base.ran
		c.want(&want)
		flag, env, both := newWorld(), newWorld(), newWorld()
		flag.main([]string{"proxy-supervisor", "--" + c.flag + "=" + c.value})
		env.env[envName(c.flag)] = c.value
		env.main([]string{"proxy-supervisor"})
		both.env[envName(c.flag)] = "7" // wrong for most, and never looked at
		both.main([]string{"proxy-supervisor", "--" + c.flag + "=" + c.value})
		for how, w := range map[string]*world{"flag": flag, "variable": env, "a flag wins": both} {
			if w.ran == nil || !reflect.DeepEqual(*w.ran, want) {
				t.Errorf("%s as %s: %+v %s", c.flag, how, w.ran, w.err.String())
			}
		}
	}
}

func TestEnvoyArgumentsComeInOrder(t *testing.T) {
	w := newWorld()
	w.env["AETHER_ENVOY_ARG"] = "--service-node\nnode with spaces\n"
	code := w.main([]string{"proxy-supervisor", "--", "-l", "info"})
	if want := []string{"--service-node", "node with spaces", "-l", "info"}; code != 0 || !reflect.DeepEqual(w.ran.ExtraArgs, want) {
		t.Errorf("%q %s", w.ran.ExtraArgs, w.err.String())
	}
	w = newWorld()
	w.env["AETHER_ENVOY_ARG"] = "--never"
	w.main([]string{"proxy-supervisor", "--envoy-arg", "-l", "--envoy-arg", "info"})
	if want := []string{"-l", "info"}; !reflect.DeepEqual(w.ran.ExtraArgs, want) {
		t.Errorf("%q", w.ran.ExtraArgs)
	}
}

func TestAnEmptyVariableIsNotSet(t *testing.T) {
	w := newWorld()
	w.env["AETHER_BASE_ID"], w.env["AETHER_CONFIG"] = "", ""
	if code := w.main([]string{"proxy-supervisor"}); code != 0 || w.ran.ConfigPath != "/etc/envoy/envoy.yaml" {
		t.Error(code, w.err.String())
	}
}

// Bad input: one sentence, exit code 2, and the supervisor never runs.
func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		env  string // NAME=value
		want string
	}{
		{args: "", want: "agent: which command? There are completion, private-directories, proxy-supervisor, proxyctl and version"},
		{args: "run", want: `agent: unknown command "run"`},
		{args: "private-directories --owner 65532", want: "agent private-directories: which directories?"},
		{args: "private-directories /dev/shm", want: "--owner has to name the user that runs the supervisor, and not root"},
		{args: "version now", want: `agent version: unexpected argument "now"`},
		{args: "proxyctl", want: "agent proxyctl: which command? There are doctor, drain, history, log, reload, status, undrain and upgrade"},
		{args: "proxyctl dance", want: `unknown command "dance"; there are doctor, drain, history, log, reload, status, undrain and upgrade`},
		{args: "proxyctl log loud", want: `"loud" is no log level: there are debug, info, warn and error`},
		{args: "proxyctl log info warn", want: `unexpected argument "warn"`},
		{args: "proxyctl status -o yaml", want: "it is one of table, json"},
		{args: "proxyctl reload now", want: `unexpected argument "now"`},
		{args: "proxyctl reload --timeout 3s", want: "--timeout goes with --wait only"},
		{args: "proxyctl reload --wait --timeout 0s", want: "--timeout 0s: it must be more than nothing"},
		{args: "proxyctl status --control-socket /" + strings.Repeat("x", 107), want: "its name has 108 bytes"},
		{args: "proxyctl status", env: "AETHER_BASE_ID=-1", want: "AETHER_BASE_ID: invalid value \"-1\" for --base-id: a base-id is a whole number"},
		{args: "proxy-supervisor --nope", want: "unknown flag: --nope"},
		{args: "proxy-supervisor envoy", want: `unexpected argument "envoy"; Envoy's own arguments, or its whole command line, come after "--"`},
		{args: "proxy-supervisor envoy -- -l", want: `unexpected argument "envoy"`},
		{args: "proxy-supervisor --config /a -- /e -c /b", want: "--config says /a, and --config-path of Envoy's command line /b; keep one of them"},
		{args: "proxy-supervisor --envoy-path /x -- /e -c /b", want: "--envoy-path says /x, and the first word of Envoy's command line /e"},
		{args: "proxy-supervisor --config /a -- /e --config-yaml {}", want: "are two bootstraps; keep one of them"},
		{args: "proxy-supervisor -- /e -c", want: `envoy argument "-c": its value is missing`},
		{args: "proxy-supervisor -- /e -c /b --drain-time-s 60", want: "--parent-shutdown-time 40s must be longer than --drain-time 1m0s"},
		{args: "proxy-supervisor -- /e -c /b --base-id 214748365", want: "--base-id 214748365 is too large"},
		{args: "proxy-supervisor --base-id 214748365", want: "a base-id is a whole number from 0 to 214748364"},
		{args: "proxy-supervisor --base-id 99999999999999999999", want: "a base-id is a whole number from 0 to 214748364"},
		{args: "proxy-supervisor --validate sometimes", want: "it is one of always, changes, never"},
		{args: "proxy-supervisor --log-level loud", want: "it is one of info, debug, warn, error"},
		{args: "proxy-supervisor", env: "AETHER_DRAIN_TIME=5", want: `AETHER_DRAIN_TIME: invalid value "5" for --drain-time: time: missing unit`},
		{args: "proxy-supervisor", env: "AETHER_RELAY=maybe", want: `AETHER_RELAY: invalid value "maybe" for --relay`},
		{args: "proxy-supervisor --otlp-endpoint http://c:4318/v1/metrics", want: "--otlp-endpoint: OTLP endpoint \"http://c:4318/v1/metrics\": gRPC takes host:port"},
		{args: "proxy-supervisor --drain-time 500ms", want: "--drain-time 500ms: Envoy takes whole seconds, at least 1s"},
	} {
		w := newWorld()
		if name, value, ok := strings.Cut(c.env, "="); ok {
			w.env[name] = value
		}
		code := w.main(strings.Fields(c.args))
		if code != hotrestart.ExitUsage || !strings.Contains(w.err.String(), c.want) || w.ran != nil || w.out.Len() != 0 {
			t.Errorf("agent %s (%s): exit code %d, ran %v\n%s", c.args, c.env, code, w.ran != nil, w.err.String())
		}
		if lines := strings.Count(w.err.String(), "\n"); lines != 2 {
			t.Errorf("agent %s: %d lines, want a sentence and a hint:\n%s", c.args, lines, w.err.String())
		}
	}
}

func TestTheSupervisorsErrorIsLoggedOnceAndDecidesTheCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{hotrestart.Exitf(hotrestart.ExitBootstrap, "bootstrap /c: not there"), 3},
		{fmt.Errorf("run: %w", hotrestart.Exitf(hotrestart.SignalCode(syscall.SIGSEGV), "epoch 3 ended by SIGSEGV")), 139},
		{errors.New("what is this"), 1},
		// Not our own mistake in usage, so without the hint to --help.
		{hotrestart.Exitf(hotrestart.ExitUsage, "envoy argument twice"), 2},
	} {
		w := newWorld()
		w.result = c.err
		code := w.main([]string{"proxy-supervisor"})
		var line struct {
			Level, Msg, Error string
			Code              int `json:"exit_code"`
		}
		if err := json.Unmarshal(w.err.Bytes(), &line); err != nil {
			t.Fatalf("not one line of JSON: %v\n%s", err, w.err.String())
		}
		if code != c.want || line.Code != c.want || line.Level != "ERROR" || line.Error != c.err.Error() {
			t.Errorf("%v: exit code %d, %s", c.err, code, w.err.String())
		}
	}
}

func TestLogFormat(t *testing.T) {
	for _, c := range []struct {
		args     string
		terminal bool
		json     bool
	}{
		{"", false, true}, {"", true, false},
		{"--log-format json", true, true}, {"--log-format text", false, false}, {"--log-format auto", true, false},
	} {
		w := newWorld()
		w.terminal = func(io.Writer) bool { return c.terminal }
		w.result = errors.New("x")
		w.main(append([]string{"proxy-supervisor"}, strings.Fields(c.args)...))
		if json.Valid(w.err.Bytes()) != c.json {
			t.Errorf("%q on a terminal (%v): %s", c.args, c.terminal, w.err.String())
		}
	}
}

func TestOurOutputIsNoTerminalWhenItIsAFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) || isTerminal(io.Discard) {
		t.Error("a terminal")
	}
}

// B10: Envoy needs the files, so the raised limit must reach our children.
func TestChildrenInheritTheRaisedFileLimit(t *testing.T) {
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	low := syscall.Rlimit{Cur: 256, Max: old.Max}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	if w := newWorld(); w.main([]string{"proxy-supervisor"}) != 0 {
		t.Fatal(w.err.String())
	}
	r, wr, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st, err := process.Run(t.Context(), process.Spec{Path: "/bin/sh", Args: []string{"-c", "ulimit -n"}, Stdout: wr})
	wr.Close()
	said, _ := io.ReadAll(r)
	want := fmt.Sprint(old.Max)
	if old.Max > 1<<62 {
		want = "unlimited"
	}
	if err != nil || st.Code != 0 || strings.TrimSpace(string(said)) != want {
		t.Errorf("%s, want %s (%v, %v)", said, want, st, err)
	}
}

func TestVersion(t *testing.T) {
	w := newWorld()
	if code := w.main([]string{"version"}); code != 0 || !strings.HasPrefix(w.out.String(), "agent devel, go1.") {
		t.Error(code, w.out.String())
	}
	w = newWorld()
	var b build
	if code := w.main([]string{"version", "-o", "json"}); code != 0 || json.Unmarshal(w.out.Bytes(), &b) != nil || !reflect.DeepEqual(b, buildVersion()) {
		t.Error(code, w.out.String())
	}
	b = build{Version: "1.2", Revision: "0123456789abcdef", Modified: true, Go: "go1", Platform: "linux/amd64", HotRestart: []string{"11.104", "12.1"}}
	if want := "agent 1.2 (0123456789ab, modified), go1, linux/amd64, Envoy hot restart 11.104, 12.1"; b.String() != want {
		t.Error(b)
	}
}
