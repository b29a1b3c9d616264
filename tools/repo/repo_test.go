package repo

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"aether.internal/tools/runfile"
)

// root is the repository's directory.
var root = runfile.Root("../..")

// maxGoLines keeps a file to what can be read in one sitting.
const maxGoLines = 400

// forbidden imports: below which directory, what, and what it would cost.
var forbidden = []struct{ below, path, instead, reason string }{
	{"agent", "os/exec", "agent/internal/proxy/process",
		"it forks on whatever thread it is called, and Envoy ends with SIGTERM when that thread does (fact 3)"},
	{"agent", "log", "",
		"a global logger can't be given to a test, nor tagged with an epoch: pass a *slog.Logger"},
	{"agent", "testing", "",
		"it is for tests: here it would add its flags to the product's"},
	{"agent", "aether.internal/tools/envoy/fetch", "tools/envoy/fetch",
		"the product never downloads anything"},
}

func TestForbiddenImports(t *testing.T) {
	used := map[string]bool{}
	for _, file := range goFiles(t, false) {
		for _, path := range imports(t, file) {
			used[path] = true
			for _, f := range forbidden {
				if path == f.path && below(file, f.below) {
					t.Errorf("%s imports %s: %s", file, path, f.reason)
				}
			}
		}
	}
	// A guard of what is no longer there guards nothing.
	if !used["log/slog"] {
		t.Error("no file imports log/slog: imports aren't found, or these guards need a new look")
	}
	for _, f := range forbidden {
		for _, dir := range []string{f.below, f.instead} {
			if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
				t.Errorf("the guard against %s names a directory that is gone: %v", f.path, err)
			}
		}
	}
}

// Tests may not fork by os/exec under agent either: what holds Envoys there
// must be the forker, or the test proves nothing about the product.
func TestTestsUnderAgentForkAsTheProductDoes(t *testing.T) {
	for _, file := range goFiles(t, true) {
		if !below(file, "agent") || !strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, path := range imports(t, file) {
			if path == "os/exec" {
				t.Errorf("%s imports os/exec: start it with agent/internal/proxy/process", file)
			}
		}
	}
}

func TestGoFilesAreShort(t *testing.T) {
	for _, file := range goFiles(t, true) {
		if n := bytes.Count(read(t, file), []byte("\n")); n > maxGoLines {
			t.Errorf("%s has %d lines, more than %d: split it by what its parts are about", file, n, maxGoLines)
		}
	}
}

// A path of the machine something was written on works there only.
func TestNoPathsOfOneMachine(t *testing.T) {
	// Put together here, or this file would be the first found.
	machine := regexp.MustCompile("(^|[^A-Za-z0-9_.)}-])(/" + "work/|/" + "tmp/ev|/" + "tmp/aether/)")
	for _, file := range files(t) {
		for n, line := range strings.Split(string(read(t, file)), "\n") {
			if found := machine.FindString(line); found != "" {
				t.Errorf("%s:%d names a path of one machine: %s", file, n+1, strings.TrimSpace(line))
			}
		}
	}
}

// The help of make is made of these comments: a target without is hidden.
func TestMakeTargetsExplainThemselves(t *testing.T) {
	makefile := read(t, "Makefile")
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindSubmatch(makefile)
	if phony == nil {
		t.Fatal("Makefile has no line .PHONY")
	}
	targets := strings.Fields(string(phony[1]))
	for _, target := range targets {
		if !regexp.MustCompile(`(?m)^` + target + `:.*## \S`).Match(makefile) {
			t.Errorf("make %s has no comment that starts with ##", target)
		}
	}
	if len(targets) == 0 || targets[0] != "help" {
		t.Errorf("targets %q: the first must be help", targets)
	}
}

// All modules build with one and the same go command.
func TestModulesPinTheSameGo(t *testing.T) {
	pin := regexp.MustCompile(`(?m)^toolchain (go\S+)$`)
	want := pin.Find(read(t, "go.mod"))
	if want == nil {
		t.Fatal("go.mod pins no toolchain")
	}
	for _, other := range []string{"tools/lint/go.mod", "tools/helm/go.mod", "tools/kube/k8s/go.mod"} {
		if got := pin.Find(read(t, other)); !bytes.Equal(got, want) {
			t.Errorf("%s pins %q, go.mod %q", other, got, want)
		}
	}
}

// files lists the repository's text files, without what is built.
func files(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case entry.IsDir() && (name == ".git" || name == "out" || name == "bin" || strings.HasPrefix(name, "bazel-")):
			return filepath.SkipDir
		case entry.Type().IsRegular() && !bytes.Contains(read(t, name), []byte{0}):
			found = append(found, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("only %d files found", len(found))
	}
	return found
}

// goFiles lists Go files, with or without tests.
func goFiles(t *testing.T, tests bool) []string {
	t.Helper()
	var found []string
	for _, file := range files(t) {
		if strings.HasSuffix(file, ".go") && (tests || !strings.HasSuffix(file, "_test.go")) {
			found = append(found, file)
		}
	}
	return found
}

func imports(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return nil
	}
	var paths []string
	for _, spec := range parsed.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func below(file, dir string) bool { return strings.HasPrefix(file, dir+"/") }
