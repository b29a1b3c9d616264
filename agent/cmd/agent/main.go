// Command agent supervises an Envoy and talks to its supervisor.
package main

import (
	"os"

	"aether.internal/agent/internal/cmd"
	"aether.internal/agent/internal/proxy/process"
)

func main() { process.Main(func() int { return cmd.Main(os.Args[1:]) }) }
