// Package router drives the built atenet-router and drain-wait beside a real
// Envoy, as the kubelet would, under load.
package router

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"aether.internal/tools/runfile"
)

// What is tested: Bazel's, or built here.
var (
	routerPath = runfile.Path("ATENET_ROUTER")
	waiterPath = runfile.Path("DRAIN_WAIT")
)

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	if routerPath != "" && waiterPath != "" {
		return m.Run()
	}
	binaries, err := os.MkdirTemp("", "router")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(binaries)
	build := exec.Command("go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", binaries+"/", "./agent/cmd/atenet-router", "./agent/cmd/drain-wait")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	routerPath, waiterPath = filepath.Join(binaries, "atenet-router"), filepath.Join(binaries, "drain-wait")
	return m.Run()
}
