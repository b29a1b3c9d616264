package cmd

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/hotrestart"
)

// Check refuses a configuration that can't work, before anything is touched:
// one sentence that names the flags and values that are wrong or collide. What
// is at the paths is the supervisor's to find out. Its errors have exit code
// ExitUsage.
func Check(cfg hotrestart.Config) error {
	for _, check := range []func(hotrestart.Config) error{
		checkPresent, checkNumbers, checkTimes, checkOrder, checkSum, checkAdmin, checkPaths, checkLengths,
	} {
		if err := check(cfg); err != nil {
			return usageError("%w", err)
		}
	}
	return nil
}

func checkPresent(cfg hotrestart.Config) error {
	for _, must := range []struct{ flag, value string }{
		{"envoy-path", cfg.EnvoyPath}, {"config", cfg.ConfigPath}, {flagStateDir, cfg.StateDir},
		{flagReadyMarker, cfg.ReadyMarkerPath}, {flagControlSocket, cfg.ControlSocket},
	} {
		if must.value == "" {
			return fmt.Errorf("--%s is empty", must.flag)
		}
	}
	return nil
}

func checkNumbers(cfg hotrestart.Config) error {
	if cfg.BaseID > hotrestart.MaxBaseID {
		return fmt.Errorf("--%s %d is too large: Envoy multiplies it by ten in 32 bits, so %d is the largest",
			flagBaseID, cfg.BaseID, hotrestart.MaxBaseID)
	}
	if cfg.Concurrency < 0 {
		return fmt.Errorf("--%s %d is negative; 0 takes it from CPU affinity and cgroup limit", flagConcurrency, cfg.Concurrency)
	}
	return nil
}

// checkTimes: Envoy takes these two as whole seconds, so half a second would
// become none without a word.
func checkTimes(cfg hotrestart.Config) error {
	for _, at := range []struct {
		flag string
		time time.Duration
	}{{flagDrainTime, cfg.DrainTime}, {flagParentShutdown, cfg.ParentShutdownTime}} {
		if at.time < time.Second || at.time%time.Second != 0 {
			return fmt.Errorf("--%s %v: Envoy takes whole seconds, at least 1s", at.flag, at.time)
		}
	}
	if cfg.HandoffDeadline <= 0 {
		return fmt.Errorf("--%s %v: a new epoch needs some time to start", flagHandoff, cfg.HandoffDeadline)
	}
	if cfg.SuccessorWait < 0 {
		return fmt.Errorf("--%s %v is negative; 0 waits for no successor", flagSuccessor, cfg.SuccessorWait)
	}
	if d := cfg.AdminUnresponsiveDeadline; d != 0 && d < time.Second { // 0: the default
		return fmt.Errorf("--%s %v: at least 1s, because an Envoy may be busy for so long", flagUnresponsive, cfg.AdminUnresponsiveDeadline)
	}
	return nil
}

func checkOrder(cfg hotrestart.Config) error {
	if cfg.ParentShutdownTime > cfg.DrainTime {
		return nil
	}
	return fmt.Errorf("--%s %v must be longer than --%s %v: an old epoch would be ended while it still drains",
		flagParentShutdown, cfg.ParentShutdownTime, flagDrainTime, cfg.DrainTime)
}

// checkSum: Envoy gets the sum of both and some (docs/concepts.md) as seconds in
// 32 bits; what overflows would end a parent at once.
func checkSum(cfg hotrestart.Config) error {
	const most = math.MaxInt32 * time.Second / 4
	if cfg.ParentShutdownTime <= most && cfg.HandoffDeadline <= most {
		return nil
	}
	return fmt.Errorf("--%s %v and --%s %v: neither can be longer than %v",
		flagParentShutdown, cfg.ParentShutdownTime, flagHandoff, cfg.HandoffDeadline, most)
}

func checkAdmin(cfg hotrestart.Config) error {
	if cfg.AdminAddress == "" {
		return nil
	}
	if _, err := envoy.ParseAddress(cfg.AdminAddress); err != nil {
		return fmt.Errorf("--admin-address: %w", err)
	}
	return nil
}

func checkPaths(cfg hotrestart.Config) error {
	seen := map[string]string{}
	for _, at := range []struct{ flag, path string }{
		{"envoy-path", cfg.EnvoyPath}, {"config", cfg.ConfigPath}, {flagStateDir, cfg.StateDir},
		{flagReadyMarker, cfg.ReadyMarkerPath}, {flagControlSocket, cfg.ControlSocket},
	} {
		clean := filepath.Clean(at.path)
		if other, taken := seen[clean]; taken {
			return fmt.Errorf("--%s and --%s are both %s", other, at.flag, at.path)
		}
		seen[clean] = at.flag
	}
	return nil
}

// checkLengths: the kernel's address of a socket has 107 bytes for a name, and
// Envoy cuts a longer one off, so that epochs would meet under a wrong name.
func checkLengths(cfg hotrestart.Config) error {
	if longest := longestSocket(cfg); len(longest) > control.MaxPath {
		return fmt.Errorf("--%s %s is too long: a socket below it (%s) would have a name of %d bytes, %d is the kernel's limit",
			flagStateDir, cfg.StateDir, longest[len(cfg.StateDir)+1:], len(longest), control.MaxPath)
	}
	if n := len(cfg.ControlSocket); n > control.MaxPath {
		return fmt.Errorf("--%s %s is too long: %d bytes, %d is the kernel's limit for a socket",
			flagControlSocket, cfg.ControlSocket, n, control.MaxPath)
	}
	return nil
}

func longestSocket(cfg hotrestart.Config) string {
	return fmt.Sprintf("%s/seat.0/hr_udp_parent_%d", cfg.StateDir, uint64(cfg.BaseID)*10+2)
}
