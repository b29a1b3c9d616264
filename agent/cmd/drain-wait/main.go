// Command drain-wait is a preStop hook: it holds an Envoy container until its
// pod has drained.
//
//	drain-wait [--deadline 55s] [MARKER]
//	drain-wait --version
//
// MARKER is /var/run/atenet/drain-complete by default, the deadline 55s: it must
// be below the pod's grace period, or the kubelet kills instead of ending. Exit 0:
// the marker is there. Exit 1: the deadline has passed, which the kubelet reports
// as FailedPreStopHook and otherwise ignores. Exit 2: wrong usage.
//
// It links the standard library and package wait, nothing else, and not fmt: it is
// copied into images without a shell.
package main

import (
	"os"
	"time"

	"aether.internal/agent/internal/proxy/drain/wait"
)

// version is set by the linker: -X main.version=1.2.3
var version = "devel"

const usage = "usage: drain-wait [--deadline 55s] [MARKER] | --version"

// Exit codes.
const (
	isDrained = iota
	isLate
	isUsage
)

func main() {
	code, said := run(os.Args[1:], say)
	if said != "" {
		say(said)
	}
	os.Exit(code)
}

func say(what string) { os.Stderr.WriteString("drain-wait: " + what + "\n") }

// run returns the exit code and what to say.
func run(args []string, say func(string)) (int, string) {
	marker, within := wait.DefaultMarker, wait.DefaultDeadline
	if len(args) == 1 && args[0] == "--version" {
		return isDrained, version
	}
	if len(args) >= 2 && args[0] == "--deadline" {
		d, err := time.ParseDuration(args[1])
		if err != nil || d <= 0 {
			return isUsage, "--deadline " + args[1] + ": want a duration like 55s; " + usage
		}
		within, args = d, args[2:]
	}
	switch {
	case len(args) > 1 || len(args) == 1 && (args[0] == "" || args[0][0] == '-'):
		return isUsage, usage
	case len(args) == 1:
		marker = args[0]
	}
	if err := wait.For(marker, within, say); err != nil {
		return isLate, marker + ": " + err.Error() + " (" + within.String() + "); Envoy ends with what it has"
	}
	return isDrained, ""
}
