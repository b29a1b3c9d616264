// Command bench measures what a handoff costs, side by side with Envoy started
// by hand at each epoch: the same Envoy, bootstrap, flags and machine, in turns
// within one run. It measures and never judges by its exit code: 0 unless it
// could not measure.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Envoy asks the kernel for SIGTERM when the thread that forked it dies
// (fact 3), so everything that forks stays on the main thread.
func init() { runtime.LockOSThread() }

type options struct {
	rounds, warmup int
	idle           time.Duration
	poll           time.Duration
	envoy          string
	out            string
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.IntVar(&o.rounds, "rounds", 30, "measured rounds; each has two starts by hand and four handoffs")
	f.IntVar(&o.warmup, "warmup", 3, "rounds before them that don't count")
	f.DurationVar(&o.idle, "idle", 20*time.Second, "how long idleness is measured")
	f.DurationVar(&o.poll, "poll", 2*time.Millisecond, "pause between two looks at /server_info; a look costs Envoy 1 ms")
	f.StringVar(&o.envoy, "envoy", "", "pinned Envoy version (empty: the default, or $ENVOY)")
	f.StringVar(&o.out, "out", "out/bench.json", "where the JSON goes")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.rounds < 2 || o.warmup < 0 || o.idle < time.Second || o.poll <= 0 {
		return o, errors.New("at least 2 rounds, 1 s of idleness and a pause between looks are needed")
	}
	return o, nil
}

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = bench(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: can't measure:", err)
		os.Exit(1)
	}
}

func bench(ctx context.Context, o options) error {
	where := describeMachine()
	fmt.Println(where)
	s, err := openSetup(ctx, o)
	if err != nil {
		return err
	}
	defer s.close()
	rounds, err := s.measure(ctx)
	if err != nil {
		return err
	}
	idle, err := s.measureIdle(ctx)
	if err != nil {
		return err
	}
	where.After = load()
	r := newReport(where, o, rounds, idle)
	r.print(os.Stdout)
	return r.save(o.out)
}
