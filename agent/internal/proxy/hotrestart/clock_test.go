package hotrestart

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// wallTime are calls that lose a time's monotonic reading, or make a time
// without one: what is compared or subtracted after that moves with a clock
// that steps. time.Now, Add, Sub, Before and After never do.
var wallTime = map[string]bool{
	"UTC": true, "Local": true, "In": true, "AddDate": true, "Date": true, "ModTime": true,
	"Unix": true, "UnixMilli": true, "UnixMicro": true, "UnixNano": true,
	"ParseInLocation": true, "GobEncode": true,
}

// steadyAnyhow are files that may use them, each with the reason why no clock's
// step can matter.
var steadyAnyhow = map[string]string{
	"envoy/message.go": "told to Envoy, which takes it for its own start",
	"envoy/relay.go":   "a deadline that is past at any time",
}

// The clock steps back, or an hour ahead, while a handoff is on its way: no
// deadline, limit, pause or age may see it. A step can't be made in a test, nor
// in a namespace of its own, without doing it to the whole machine.
func TestNothingIsDecidedByWallTime(t *testing.T) {
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		name := strings.TrimPrefix(path, "../")
		if strings.HasSuffix(name, "_test.go") || steadyAnyhow[name] != "" {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if s, ok := call.Fun.(*ast.SelectorExpr); ok && (wallTime[s.Sel.Name] || s.Sel.Name == "Round" && isZero(call.Args[0])) {
				t.Errorf("%s: %s uses the wall clock: after a step of the clock its result is wrong", set.Position(call.Pos()), s.Sel.Name)
			}
			return true
		})
	}
}

// isZero: Round(0) is how a time is stripped on purpose.
func isZero(x ast.Expr) bool {
	lit, ok := x.(*ast.BasicLit)
	return ok && lit.Value == "0"
}
