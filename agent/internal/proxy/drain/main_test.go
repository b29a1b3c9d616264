package drain

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"aether.internal/agent/internal/proxy/process"
)

// TestMain gives the main thread to the forker, for the tests with a real Envoy.
func TestMain(m *testing.M) {
	process.Main(func() int {
		code := m.Run()
		if err := goleak.Find(goleak.IgnoreAnyFunction("aether.internal/agent/internal/proxy/process.Main")); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, "goleak:", err)
			return 1
		}
		return code
	})
}
