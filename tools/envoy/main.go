// Envoy gets a pinned Envoy and prints where it is.
//
//	go run ./tools/envoy                     # the default version, or $ENVOY
//	go run ./tools/envoy -version 1.39.3
//	go run ./tools/envoy -print versions     # what is pinned for this machine
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"aether.internal/tools/envoy/fetch"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	answer, err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tools/envoy:", err)
		os.Exit(1)
	}
	fmt.Println(answer)
}

// run returns what to print.
func run(ctx context.Context, args []string) (string, error) {
	flags := flag.NewFlagSet("envoy", flag.ExitOnError)
	version := flags.String("version", "", "pinned `version` to get; without it $ENVOY, else "+fetch.Default)
	what := flags.String("print", "path", "`what` to print: path or versions")
	if err := flags.Parse(args); err != nil {
		return "", err
	}
	if flags.NArg() > 0 {
		return "", fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch *what {
	case "path":
		return fetch.Path(ctx, *version)
	case "versions":
		versions, err := fetch.Versions()
		return strings.Join(versions, "\n"), err
	}
	return "", fmt.Errorf("-print %s: can print path or versions", *what)
}
