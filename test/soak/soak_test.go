package main

import (
	"os"
	"testing"

	"aether.internal/test/node"
)

func TestMain(m *testing.M) {
	code := m.Run()
	node.RemoveAgent()
	os.Exit(code)
}

// The short version of `make soak`. A sample for every sixth handoff: what leaks
// with each one shows; what leaks more slowly is for the long version.
func TestSoakShort(t *testing.T) {
	if err := run(t.Context(), options{handoffs: 60, every: 6, rate: 60}, t.Output()); err != nil {
		t.Error(err)
	}
}
