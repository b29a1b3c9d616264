package cmd

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/hotrestart"
)

const flagReadiness = "readiness-check"

// readinessTime is as long as proxy-ready waits for a file system.
const readinessTime = 900 * time.Millisecond

// checkReadiness is what proxy-ready does, from before there was one: this program
// takes four times as long (docs/benchmarks.md).
func (a app) checkReadiness(f *pflag.FlagSet, o *supervisorOptions) error {
	cfg := o.cfg
	a.places.fallBack(&cfg, f)
	if err := absolute(&cfg); err != nil {
		return err
	}
	marker := cfg.ReadyMarkerPath
	fmt.Fprintf(a.stderr, "--%s is deprecated, for what it costs at each probe: use %s %s\n", flagReadiness, readinessProgram, marker)
	found := make(chan error, 1)
	go func() { found <- coordination.MarkerFresh(marker) }() // ends with the program, if its file system hangs
	select {
	case err := <-found:
		if err != nil {
			return hotrestart.Exitf(hotrestart.ExitUnexpected, "not ready: %w", err)
		}
		return nil
	case <-time.After(readinessTime):
		return hotrestart.Exitf(hotrestart.ExitUnexpected, "not ready: the file system of %s doesn't answer", marker)
	}
}

func bindReadiness(f *pflag.FlagSet, wanted *bool) {
	f.BoolVar(wanted, flagReadiness, false, "deprecated, use "+readinessProgram+": exit with 0 if the ready marker is fresh, else with 1")
}
