// Command proxy-ready is an exec probe: is the ready marker fresh?
//
//	proxy-ready MARKER      # exit 0: a supervisor holds it and its Envoy serves
//	proxy-ready --version
//
// Exit 1 for anything else at MARKER, with a line that says what; 2 for wrong
// usage. It links the standard library and package fresh, nothing else, and not
// fmt: it starts every few seconds on every node. Its targets :deps_test and
// :size_test hold it to that.
package main

import (
	"os"
	"time"

	"aether.internal/agent/internal/proxy/coordination/marker/fresh"
)

// version is set by the linker: -X main.version=1.2.3
var version = "devel"

// deadline is below the second that a probe has by default: a file system that
// hangs must not make the kubelet count a probe that never answered.
const deadline = 900 * time.Millisecond

// Exit codes.
const (
	isFresh = iota
	isNot
	isUsage
)

func main() {
	code, said := run(os.Args[1:], fresh.Check, deadline, func() { end(isNot, "proxy-ready: its file system doesn't answer") })
	end(code, said)
}

func end(code int, said string) {
	out := os.Stderr
	if code == isFresh {
		out = os.Stdout
	}
	if said != "" {
		out.WriteString(said + "\n")
	}
	os.Exit(code)
}

// run returns the exit code and what to say. It calls giveUp from a goroutine of
// its own if the check takes longer than within. (A channel and a select would
// say it more plainly, in 70 KB.)
func run(args []string, check func(string) error, within time.Duration, giveUp func()) (int, string) {
	switch {
	case len(args) == 1 && args[0] == "--version":
		return isFresh, "proxy-ready " + version
	case len(args) != 1 || args[0] == "" || args[0][0] == '-':
		return isUsage, "usage: proxy-ready MARKER | --version"
	}
	defer time.AfterFunc(within, giveUp).Stop()
	if err := check(args[0]); err != nil {
		return isNot, "proxy-ready: " + err.Error()
	}
	return isFresh, ""
}
