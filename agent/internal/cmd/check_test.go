package cmd

import (
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/hotrestart"
)

func good() hotrestart.Config {
	return hotrestart.Config{
		EnvoyPath: "/envoy", ConfigPath: "/envoy.yaml", StateDir: "/state", ReadyMarkerPath: "/ready", ControlSocket: "/control",
		DrainTime: time.Second, ParentShutdownTime: 2 * time.Second, HandoffDeadline: time.Millisecond,
		BaseID: hotrestart.MaxBaseID, AdminAddress: "[::1]:9901",
	}
}

func TestCheck(t *testing.T) {
	long := func(n int) string { return "/" + strings.Repeat("x", n-1) }
	// /seat.0/hr_udp_parent_2147483642 has 32 bytes
	const below = 107 - 32
	for _, c := range []struct {
		name   string
		change func(*hotrestart.Config)
		want   string // "" passes
	}{
		{"the smallest that works", func(*hotrestart.Config) {}, ""},
		{"no binary", func(c *hotrestart.Config) { c.EnvoyPath = "" }, "--envoy-path is empty"},
		{"no bootstrap", func(c *hotrestart.Config) { c.ConfigPath = "" }, "--config is empty"},
		{"no state", func(c *hotrestart.Config) { c.StateDir = "" }, "--state-dir is empty"},
		{"no marker", func(c *hotrestart.Config) { c.ReadyMarkerPath = "" }, "--ready-marker is empty"},
		{"no socket", func(c *hotrestart.Config) { c.ControlSocket = "" }, "--control-socket is empty"},
		{"base-id overflows", func(c *hotrestart.Config) { c.BaseID++ }, "--base-id 214748365 is too large: Envoy multiplies it by ten in 32 bits, so 214748364 is the largest"},
		{"fewer workers than none", func(c *hotrestart.Config) { c.Concurrency = -1 }, "--concurrency -1 is negative; 0 takes it from CPU affinity and cgroup limit"},
		{"no drain", func(c *hotrestart.Config) { c.DrainTime = 0 }, "--drain-time 0s: Envoy takes whole seconds, at least 1s"},
		{"negative drain", func(c *hotrestart.Config) { c.DrainTime = -time.Second }, "--drain-time -1s: Envoy takes whole seconds, at least 1s"},
		{"half a second of drain", func(c *hotrestart.Config) { c.DrainTime = 500 * time.Millisecond }, "--drain-time 500ms: Envoy takes whole seconds, at least 1s"},
		{"and a half", func(c *hotrestart.Config) { c.ParentShutdownTime = 2500 * time.Millisecond }, "--parent-shutdown-time 2.5s: Envoy takes whole seconds, at least 1s"},
		{"ended as it is drained", func(c *hotrestart.Config) { c.DrainTime = 2 * time.Second }, "--parent-shutdown-time 2s must be longer than --drain-time 2s: an old epoch would be ended while it still drains"},
		{"ended before", func(c *hotrestart.Config) { c.DrainTime = 3 * time.Second }, "--parent-shutdown-time 2s must be longer than --drain-time 3s: an old epoch would be ended while it still drains"},
		{"no time to start", func(c *hotrestart.Config) { c.HandoffDeadline = 0 }, "--handoff-deadline 0s: a new epoch needs some time to start"},
		{"less than none", func(c *hotrestart.Config) { c.HandoffDeadline = -1 }, "--handoff-deadline -1ns: a new epoch needs some time to start"},
		{"longer than Envoy's number", func(c *hotrestart.Config) { c.ParentShutdownTime = 200000 * time.Hour }, "--parent-shutdown-time 200000h0m0s and --handoff-deadline 1ms: neither can be longer than 149130h48m31.75s"},
		{"admin without port", func(c *hotrestart.Config) { c.AdminAddress = "localhost" }, `--admin-address: address "localhost": want host:port or unix:PATH`},
		{"admin of a socket", func(c *hotrestart.Config) { c.AdminAddress = "unix:/run/admin" }, ""},
		{"one path twice", func(c *hotrestart.Config) { c.ReadyMarkerPath = "/./control" }, "--ready-marker and --control-socket are both /control"},
		{"longest state dir", func(c *hotrestart.Config) { c.StateDir = long(below) }, ""},
		{"too long by one", func(c *hotrestart.Config) { c.StateDir = long(below + 1) },
			"--state-dir " + long(below+1) + " is too long: a socket below it (seat.0/hr_udp_parent_2147483642) would have a name of 108 bytes, 107 is the kernel's limit"},
		{"a smaller base-id leaves room", func(c *hotrestart.Config) { c.StateDir, c.BaseID = long(below+9), 0 }, ""},
		{"longest control socket", func(c *hotrestart.Config) { c.ControlSocket = long(107) }, ""},
		{"too long by two", func(c *hotrestart.Config) { c.ControlSocket = long(109) },
			"--control-socket " + long(109) + " is too long: 109 bytes, 107 is the kernel's limit for a socket"},
	} {
		cfg := good()
		c.change(&cfg)
		err := Check(cfg)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || err.Error() != c.want || hotrestart.ExitCode(err) != hotrestart.ExitUsage):
			t.Errorf("%s:\ngot  %v (exit code %d)\nwant %s", c.name, err, hotrestart.ExitCode(err), c.want)
		}
	}
}
