package repo

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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

// The go command says "context deadline exceeded" and fails when its own time is
// over at a bad moment; that must hide no failure.
func TestFuzzTellsFailuresFromTheEndOfItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		told   string
		exit   int
		passed bool
	}{
		"passed":            {"PASS", 0, true},
		"its time was over": {"--- FAIL: FuzzRelay (45.14s)\n    context deadline exceeded\nFAIL", 1, true},
		"failed":            {"--- FAIL: FuzzRelay (0s)\n    relay_test.go:12: no\n    Failing input written to testdata/fuzz/FuzzRelay/1", 1, false},
		"failed so":         {"--- FAIL: FuzzRelay (0s)\n    relay_test.go:12:\n    context deadline exceeded", 1, false},
		"didn't build":      {"FAIL x [build failed]", 1, false},
	} {
		bin := t.TempDir()
		// tools/go-toolchain asks for the module, and takes who answers.
		fake := "#!/bin/sh\n[ $1 = test ] || exit 0\nprintf '%s\\n' '" + c.told + "'\nexit " + strconv.Itoa(c.exit) + "\n"
		if err := os.WriteFile(filepath.Join(bin, "go"), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), "tools/fuzz", "^FuzzRelay$")
		cmd.Dir, cmd.Env = root, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); (err == nil) != c.passed || !strings.Contains(string(out), c.told) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
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
