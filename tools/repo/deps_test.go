package repo

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// little are the programs that are copied into images without anything else, and
// what they may link beside the standard library.
var little = map[string][]string{
	"agent/cmd/drain-wait": {"aether.internal/agent/internal/proxy/drain/wait"},
}

// fmt brings reflect and half a megabyte; net brings a resolver.
var heavy = []string{"fmt", "net", "log/slog", "encoding/json"}

func TestLittleProgramsLinkLittle(t *testing.T) {
	for program, ours := range little {
		list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.Standard}} {{.ImportPath}}", "./"+program)
		list.Dir = root
		out, err := list.Output()
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		own := []string{"aether.internal/" + program}
		for line := range strings.Lines(string(out)) {
			standard, path, _ := strings.Cut(strings.TrimSpace(line), " ")
			if standard == "true" && slices.Contains(heavy, path) {
				t.Errorf("%s links %s", program, path)
			}
			if standard != "true" && !slices.Contains(ours, path) && !slices.Contains(own, path) {
				t.Errorf("%s links %s, which is neither the standard library nor listed here", program, path)
			}
		}
		if !strings.Contains(string(out), ours[0]) { // a guard of what is gone guards nothing
			t.Errorf("%s doesn't link %s any more", program, ours[0])
		}
	}
}
