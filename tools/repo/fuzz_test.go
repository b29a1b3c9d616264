package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// tools/fuzz finds targets by a pattern; what it doesn't find is never fuzzed.
func TestEveryFuzzTargetIsFound(t *testing.T) {
	var want []string
	for _, file := range goFiles(t, true) {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				want = append(want, "./"+filepath.Dir(file)+" "+f.Name.Name)
			}
		}
	}
	if slices.Sort(want); len(want) < 10 {
		t.Fatalf("only %d targets in the source: %q", len(want), want)
	}
	got := listTargets(t)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("tools/fuzz -l: %q\nin the source: %q", got, want)
	}
}

func TestFuzzTakesPatterns(t *testing.T) {
	if got := listTargets(t, "Bootst", "^FuzzRelay$"); len(got) != 2 {
		t.Errorf("%q", got)
	}
	cmd := exec.CommandContext(t.Context(), "tools/fuzz", "-l", "NoSuchTarget")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "no target is called so") {
		t.Errorf("nothing to do is a success: %v, %s", err, out)
	}
}

func listTargets(t *testing.T, patterns ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "tools/fuzz", append([]string{"-l"}, patterns...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
