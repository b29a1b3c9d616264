package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/load/upstream"
)

// Exit codes.
const (
	exitOK       = 0
	exitFailures = 1 // an operation failed
	exitUsage    = 2 // flags or plan can't be run
	exitOverrun  = 3 // nothing failed, but the load wasn't what the plan says
)

// run is main. ctx ends at the first signal, which stops the load in good
// order; again gives signals back their default, so that a second one kills.
func run(ctx context.Context, again func(), args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "load:", err)
		return exitUsage
	}
	if o.serve {
		return serve(ctx, stdout, stderr)
	}
	// Not ctx: a signal ends the schedule, not the streams that are out.
	r, err := load.Start(context.WithoutCancel(ctx), o.plan)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return exitUsage
	}
	watch(ctx, o.duration, r, stderr)
	again()
	return finish(r.Stop(), o.json, stdout, stderr)
}

// watch prints a line a second until the run is over.
func watch(ctx context.Context, d time.Duration, r *load.Runner, stderr io.Writer) {
	if d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	second := time.NewTicker(time.Second)
	defer second.Stop()
	before := r.Snapshot()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			now := r.Snapshot()
			fmt.Fprintln(stderr, line(before, now))
			before = now
		}
	}
}

// line is what happened between two snapshots.
func line(before, now load.Report) string {
	rate := float64(now.OK()-before.OK()) / (now.Duration - before.Duration).Seconds()
	return fmt.Sprintf("%6s  %5.0f ok/s  %d ok  %d failed  %d retried  %d overrun  epochs %v",
		now.Duration.Round(100*time.Millisecond), rate, now.OK(), now.Failures(), now.Retried(), now.Overruns(), now.Epochs())
}

func finish(r load.Report, asJSON bool, stdout, stderr io.Writer) int {
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(r); err != nil {
			fmt.Fprintln(stderr, "load: write the report:", err)
			return exitFailures
		}
	} else {
		fmt.Fprint(stdout, r.Table())
	}
	switch {
	case r.Failures() > 0:
		return exitFailures
	case r.Overruns() > 0:
		return exitOverrun
	}
	return exitOK
}

// serve runs the upstream server alone, for an Envoy started by hand.
func serve(ctx context.Context, stdout, stderr io.Writer) int {
	s, err := upstream.Start()
	if err != nil {
		fmt.Fprintln(stderr, "load:", err)
		return exitUsage
	}
	fmt.Fprintf(stdout, "http %s\ntcp %s\n", s.HTTP, s.TCP)
	<-ctx.Done()
	if err := s.Close(); err != nil {
		fmt.Fprintln(stderr, "load: close the upstream:", err)
		return exitFailures
	}
	return exitOK
}
