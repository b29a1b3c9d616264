// Command demo shows what this project is for: an Envoy under load whose
// bootstrap and binary are changed again and again, and not one request
// fails. It needs Go and either pip or $ENVOY, and no privileges.
//
// It ends with 0 when nothing was dropped, with 1 when something was or the
// story went otherwise, with 2 when it could not begin, and with 130 when it
// was interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

func main() {
	os.Exit(command())
}

func command() int {
	path := flag.String("report", filepath.Join("out", "demo.html"), "where the HTML report is written")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "demo: unexpected argument %q\n", flag.Arg(0))
		return exitUnable
	}
	// They stay caught to the end: a second Ctrl-C must not leave an Envoy behind.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// Nor must a reader of our output that goes away: unless somebody asks for
	// SIGPIPE, a write to it ends a Go program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	defer node.RemoveAgent()
	d := demo{out: os.Stdout, report: *path, plan: plan, story: story, pace: time.Second}
	if note := busy(); note != "" {
		fmt.Printf("%s, so it gets a third of the load\n", note)
		d.plan = lighter
	}
	return d.run(ctx)
}

// width of a point of the timeline: enough operations for a percentile.
const width = 200 * time.Millisecond

// plan is the load: every kind, streams of three seconds. Slow is not dropped:
// a busy machine gets time.
func plan(t load.Target) load.Plan {
	p := load.DefaultPlan(t)
	p.StreamDuration, p.Bucket, p.Timeout = 3*time.Second, width, 20*time.Second
	return p
}

// lighter is a third of the plan, for a machine that has other things to do.
func lighter(t load.Target) load.Plan {
	p := plan(t)
	for i := range p.Kinds {
		p.Kinds[i].Rate /= 3
	}
	return p
}
