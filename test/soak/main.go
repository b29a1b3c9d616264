// Command soak hands one supervisor over a thousand times under load and looks,
// every few handoffs, at everything that could pile up: memory, descriptors,
// threads, sockets, files, shared memory, processes, zombies. It fails when any
// of them grows, when an operation of the load fails, and when a handoff does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"aether.internal/test/node"
)

type options struct {
	handoffs int
	every    int     // handoffs between two samples
	rate     float64 // operations per second
	envoy    string
	out      string // "" writes none
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("soak", flag.ContinueOnError)
	f.SetOutput(usage)
	f.IntVar(&o.handoffs, "n", 1000, "handoffs")
	f.IntVar(&o.every, "every", 10, "handoffs between two samples")
	f.Float64Var(&o.rate, "rate", 100, "operations per second of the load")
	f.StringVar(&o.envoy, "envoy", "", "pinned Envoy version (empty: the default, or $ENVOY)")
	f.StringVar(&o.out, "out", "out/soak.json", "where the JSON goes, and the supervisor's log beside it; empty: nowhere")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.every < 1 || o.rate <= 0:
		return o, errors.New("-every and -rate have to be above 0")
	case o.handoffs/o.every < fewestSamples:
		return o, fmt.Errorf("%d handoffs, a sample every %d, are fewer than the %d samples a judgement needs", o.handoffs, o.every, fewestSamples)
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = run(ctx, o, os.Stdout)
		stop()
		node.RemoveAgent()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// run soaks, prints and judges. Its error says what grew or failed.
func run(ctx context.Context, o options, w io.Writer) error {
	rep, err := soak(ctx, o, w)
	if rep == nil {
		return err
	}
	rep.print(w)
	if o.out != "" {
		err = errors.Join(err, rep.write(o.out))
	}
	return errors.Join(err, rep.failure())
}
