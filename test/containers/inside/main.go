// Command inside holds a pod's namespaces, as a sandbox's pause container does,
// and acts in them for a test. Its argument is the Unix socket to listen on.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"aether.internal/test/containers/actor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: inside SOCKET")
		os.Exit(2)
	}
	if err := actor.Serve(ctx, os.Args[1], func() { fmt.Println(actor.Started) }); err != nil {
		fmt.Fprintln(os.Stderr, "inside:", err)
		os.Exit(1)
	}
}
