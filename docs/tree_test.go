package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"aether.internal/tools/runfile"
)

// root is the repository's directory.
var root = runfile.Root("..")

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// documents are the Markdown files, by their path below root.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"README.md"}
	for _, doc := range docs {
		names = append(names, filepath.Join("docs", filepath.Base(doc)))
	}
	return names
}

type goFile struct {
	*ast.File
	name string
}

// goFiles are all Go files of the repository, with their comments.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "out" || name == "bin" || name == ".git" || strings.HasPrefix(name, "bazel-")):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, goFile{parsed, name})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// said is what the product may tell an operator, and which file says it.
type said struct{ messages, steps map[string]string }

// sayings finds, under agent, the messages of warnings and errors, and the
// steps of refusals and of newcomers that are taken back.
func sayings(t *testing.T) said {
	t.Helper()
	all := said{map[string]string{}, map[string]string{}}
	for _, file := range goFiles(t) {
		if !strings.HasPrefix(file.name, "agent/") || strings.HasSuffix(file.name, "_test.go") {
			continue
		}
		ast.Inspect(file.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				all.call(t, file.name, n)
			case *ast.CompositeLit:
				if isNamed(n.Type, "Refusal") || isNamed(n.Type, "Failure") {
					all.literal(file.name, n)
				}
			}
			return true
		})
	}
	return all
}

// call takes log.Warn("…"), t.log(slog.LevelWarn, "…") and t.takeBack(g, "…").
func (s said) call(t *testing.T, file string, call *ast.CallExpr) {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return
	}
	switch name := method.Sel.Name; {
	case (name == "Warn" || name == "Error") && isLogger(method.X):
		s.message(t, file, call, 0)
	case name == "log" && len(call.Args) > 1 && (isNamed(call.Args[0], "LevelWarn") || isNamed(call.Args[0], "LevelError")):
		s.message(t, file, call, 1)
	case name == "takeBack" && len(call.Args) == 3:
		if step, ok := text(call.Args[1]); ok {
			s.steps[step] = file
		}
	}
}

func (s said) message(t *testing.T, file string, call *ast.CallExpr, at int) {
	message, ok := text(call.Args[at])
	if !ok {
		t.Errorf("%s logs a warning whose text isn't a literal: nobody can look it up", file)
		return
	}
	s.messages[message] = file
}

// literal takes the Step of a Refusal or a Failure.
func (s said) literal(file string, lit *ast.CompositeLit) {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && isNamed(kv.Key, "Step") {
			if step, ok := text(kv.Value); ok {
				s.steps[step] = file
			}
		}
	}
}

// isLogger goes by the name, log or Log: types would need the whole program.
func isLogger(x ast.Expr) bool { return isNamed(x, "log") || isNamed(x, "Log") }

// isNamed tells whether x is name, or a selector that ends in it.
func isNamed(x ast.Expr, name string) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}

func text(x ast.Expr) (string, bool) {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

func withoutCode(doc string) string { return fenced.ReplaceAllString(doc, "") }

// anchors are the names that GitHub gives to headings.
func anchors(doc string) []string {
	var names []string
	for line := range strings.Lines(withoutCode(doc)) {
		if level, heading, ok := strings.Cut(strings.TrimSpace(line), " "); ok && strings.Trim(level, "#") == "" && level != "" {
			names = append(names, slug(heading))
		}
	}
	return names
}

func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
