// Command atenet-router is the control plane of a pod with an Envoy.
package main

import (
	"os"

	"aether.internal/agent/internal/router/cmd"
)

func main() { os.Exit(cmd.Main(os.Args[1:])) }
