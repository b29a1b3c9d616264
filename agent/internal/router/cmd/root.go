// Package cmd is the router's command line: flags and environment become
// router.Options, errors become exit codes.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel"
	"google.golang.org/grpc/grpclog"

	"aether.internal/agent/internal/proxy/hotrestart"
	"aether.internal/agent/internal/router"
)

// version is set by the linker: -X aether.internal/agent/internal/router/cmd.version=1.2.3
var version = "devel"

// Exit codes.
const (
	ExitOK    = 0 // stopped as asked, drained or not
	ExitError = 1 // it can't start, or a server of ours failed
	ExitUsage = 2 // wrong flags, variables or times
)

// Main runs the router with args (without the program's name) and returns its
// exit code.
func Main(args []string) int { return run(args, os.Stdout, os.Stderr, os.LookupEnv) }

// usage is an error of the command line.
type usage struct{ error }

func run(args []string, stdout, stderr io.Writer, lookup func(string) (string, bool)) int {
	root := command(stderr, lookup)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	var u usage
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &u):
		fmt.Fprintf(stderr, "atenet-router: %v\nRun 'atenet-router --help' for its flags.\n", err)
		return ExitUsage
	}
	fmt.Fprintf(stderr, "atenet-router: %v\n", err)
	return ExitError
}

func command(stderr io.Writer, lookup func(string) (string, bool)) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:               "atenet-router",
		Short:             "Routes and parks requests behind the Envoy of its pod, and ends the pod without losing one",
		Args:              cobra.NoArgs,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		RunE: func(c *cobra.Command, _ []string) error {
			parsed, err := o.parse(c.Flags(), lookup)
			if err != nil {
				return usage{err}
			}
			return serve(c.Context(), o, parsed, newLogger(stderr, o))
		},
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage{err} })
	o.bind(root.Flags())
	root.AddCommand(bootstrapCommand(lookup), installCommand(os.Executable), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), version) },
	})
	return root
}

// serve runs until a signal, and until the drain that it begins is over.
func serve(ctx context.Context, o options, parsed router.Options, log *slog.Logger) error {
	// gRPC would write lines of its own form, one for each Envoy that goes.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	stop, hurry, done := stopSignals(ctx)
	defer done()
	tel := openTelemetry(stop, o, log)
	defer func() {
		if err := tel.Shutdown(context.WithoutCancel(ctx)); err != nil {
			log.Debug("telemetry: the last export", "error", err)
		}
	}()
	parsed.Meter, parsed.Log = tel.Meter(), log
	return router.Run(stop, hurry, parsed)
}

// stopSignals end one context after the other.
func stopSignals(ctx context.Context) (stop, hurry context.Context, done func()) {
	if ctx == nil {
		ctx = context.Background()
	}
	stop, first := context.WithCancel(ctx)
	hurry, second := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	over := make(chan struct{})
	go func() { // ends with done
		for _, cancel := range []context.CancelFunc{first, second} {
			select {
			case <-signals:
				cancel()
			case <-over:
				return
			}
		}
	}()
	return stop, hurry, func() {
		signal.Stop(signals)
		close(over)
		first()
		second()
	}
}

// openTelemetry returns nothing when nobody wants any, or it can't be had: that
// is no reason not to route.
func openTelemetry(ctx context.Context, o options, log *slog.Logger) *hotrestart.Telemetry {
	if !hotrestart.TelemetryWanted(o.otlp, os.LookupEnv) {
		return nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Debug("telemetry", "error", err) }))
	t, err := hotrestart.NewTelemetry(ctx, hotrestart.TelemetryConfig{
		OTLPEndpoint: o.otlp, ServiceName: "atenet-router", ServiceVersion: version, Log: log,
	})
	if err != nil {
		log.Warn("there is no telemetry", "error", err)
		return nil
	}
	return t
}

func newLogger(w io.Writer, o options) *slog.Logger {
	var least slog.Level
	_ = least.UnmarshalText([]byte(o.logLevel)) // checked
	with := &slog.HandlerOptions{Level: least}
	if o.logFormat == "text" {
		return slog.New(slog.NewTextHandler(w, with))
	}
	return slog.New(slog.NewJSONHandler(w, with))
}
