package docs

import (
	"flag"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "correct the lines that name tests in "+rulesAndFacts)

// Each rule and fact names its tests: those that exist, all that bear its
// number among them, or what the first one will come with.
func TestEntriesNameTheirTests(t *testing.T) {
	tests := testNames(t)
	doc := read(t, rulesAndFacts)
	entries := strings.Split(doc, "\n### ")
	for i, entry := range entries[1:] {
		heading, _, _ := strings.Cut(entry, "\n")
		before, line, found := strings.Cut(entry, "\nTests: ")
		line, after, _ := strings.Cut(line, "\n")
		want := testsLine(line, heading, tests)
		switch {
		case !found || want == "":
			t.Errorf("%q names neither a test nor, as \"not tested yet (…)\", what it comes with", heading)
		case want != line && !*update:
			t.Errorf("%q should name these tests (go test ./docs -update writes them):\n got %s\nwant %s", heading, line, want)
		}
		entries[i+1] = before + "\nTests: " + want + "\n" + after
	}
	if corrected := strings.Join(entries, "\n### "); *update && !t.Failed() && corrected != doc {
		if err := os.WriteFile(filepath.Join(root, rulesAndFacts), []byte(corrected), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

var quotedTest = regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")

// testsLine is what should stand in an entry's line: the tests it names as far
// as they exist, then those that are named after it.
func testsLine(line, heading string, tests map[string]bool) string {
	if strings.HasPrefix(line, "not tested yet (") && len(namedAfter(heading, tests)) == 0 {
		return line
	}
	var names []string
	for _, m := range quotedTest.FindAllStringSubmatch(line, -1) {
		if tests[m[1]] {
			names = append(names, m[1])
		}
	}
	for _, name := range namedAfter(heading, tests) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		names[i] = "`" + name + "`"
	}
	return strings.Join(names, ", ")
}

// namedAfter are the tests with "Rule3" or "Fact20" in their name.
func namedAfter(heading string, tests map[string]bool) []string {
	kind, rest, _ := strings.Cut(heading, " ")
	number, _, _ := strings.Cut(rest, ":")
	bears := regexp.MustCompile(fmt.Sprintf(`%s%s(\D|$)`, kind, number))
	return slices.DeleteFunc(slices.Sorted(maps.Keys(tests)), func(name string) bool { return !bears.MatchString(name) })
}

func TestTestsLine(t *testing.T) {
	tests := map[string]bool{"TestOther": true, "TestRule1Holds": true, "TestRule12Too": true, "TestRule2AndFact1": true}
	for _, c := range []struct{ line, heading, want string }{
		{"`TestOther`, `TestGone`", "Rule 1: x", "`TestOther`, `TestRule1Holds`"},
		{"not tested yet (comes with x)", "Rule 12: x", "`TestRule12Too`"},
		{"not tested yet (comes with x)", "Fact 2: x", "not tested yet (comes with x)"},
		{"`TestRule2AndFact1`", "Fact 1: x", "`TestRule2AndFact1`"},
		{"`TestGone`", "Fact 2: x", ""},
	} {
		if got := testsLine(c.line, c.heading, tests); got != c.want {
			t.Errorf("%q under %q: %q, want %q", c.line, c.heading, got, c.want)
		}
	}
}

// testNames are those of the whole repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for _, file := range goFiles(t) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Recv == nil && strings.HasSuffix(file.name, "_test.go") && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				tests[f.Name.Name] = true
			}
		}
	}
	return tests
}
