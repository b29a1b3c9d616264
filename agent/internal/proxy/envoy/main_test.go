package envoy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"aether.internal/agent/internal/proxy/process"
)

// TestMain gives the main thread to the forker and, at the end, finds what was
// left behind.
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

// wantError fails unless err says all of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", words)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("error %q does not say %q", err, word)
		}
	}
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
