// Package guard judges what programs are linked from and what they weigh. The
// tests that call it are made by deps_guard_test and size_guard_test (defs.bzl).
package guard

import (
	"bufio"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Deps says what a target may be linked from. Modules are named by their paths,
// our own packages by their labels.
type Deps struct {
	Target string // the guarded one's label
	// Only lists every package of ours that may be linked; with it no module may
	// be. Nil: any.
	Only []string
	// Never maps modules, and all below them, to the reason.
	Never map[string]string
	// NotYet lists those of Never that go.mod doesn't have (yet).
	NotYet []string
}

// Check returns what is wrong, sentences that say what to do, given the labels
// of its dependencies as Bazel writes them and the repository's go.mod. A guard that
// can't fail is wrong, too.
func (d Deps) Check(labels []string, goMod string) []string {
	if !slices.Contains(labels, d.Target) {
		return []string{fmt.Sprintf("the %d labels given don't have %s itself: they are not its dependencies", len(labels), d.Target)}
	}
	if d.Only == nil && len(d.Never) == 0 {
		return []string{"this guard forbids nothing"}
	}
	linked := read(labels, d.Target)
	var wrong []string
	if d.Only != nil {
		wrong = append(wrong, d.only(linked)...)
	}
	return append(wrong, d.never(linked, goMod)...)
}

func (d Deps) only(linked linked) []string {
	var wrong []string
	for _, repo := range linked.repositories {
		wrong = append(wrong, fmt.Sprintf("%s is linked from the module %s: it may have nothing but the standard library and %s; "+
			"do without it, or move what needs it to another program", d.Target, repo, strings.Join(d.Only, ", ")))
	}
	for _, p := range linked.packages {
		if !slices.Contains(d.Only, p) {
			wrong = append(wrong, fmt.Sprintf("%s is linked from %s: it may have nothing but the standard library and %s; "+
				"move what it needs to a package that imports nothing else", d.Target, p, strings.Join(d.Only, ", ")))
		}
	}
	for _, p := range d.Only {
		if !slices.Contains(linked.packages, p) {
			wrong = append(wrong, fmt.Sprintf("%s isn't linked from %s any more (or that is gone): take it off the list", d.Target, p))
		}
	}
	return wrong
}

func (d Deps) never(linked linked, goMod string) []string {
	var wrong []string
	for _, module := range slices.Sorted(maps.Keys(d.Never)) {
		for _, repo := range linked.repositories {
			if name := Repository(module); repo == name || strings.HasPrefix(repo, name+"_") {
				wrong = append(wrong, fmt.Sprintf("%s is linked from %s (@%s): %s", d.Target, module, repo, d.Never[module]))
			}
		}
		known := requires(goMod, module)
		switch notYet := slices.Contains(d.NotYet, module); {
		case !known && !notYet:
			wrong = append(wrong, fmt.Sprintf("go.mod has no %s any more: was it renamed? This guard guards nothing", module))
		case known && notYet:
			wrong = append(wrong, fmt.Sprintf("go.mod has %s by now: take it off not_yet", module))
		}
	}
	for _, module := range d.NotYet {
		if d.Never[module] == "" {
			wrong = append(wrong, fmt.Sprintf("not_yet has %s, never doesn't", module))
		}
	}
	return wrong
}

// linked are dependencies apart from the target itself, sorted.
type linked struct {
	packages     []string // ours: //agent/internal/cmd
	repositories []string // modules, as gazelle names them: com_github_spf13_cobra
}

// external is a label in a module's repository: of Bazel 7 or, with +, of 8.
var external = regexp.MustCompile(`^@@[^/]*go_deps[~+]([^/]+)//`)

func read(labels []string, target string) linked {
	own, repos := map[string]bool{}, map[string]bool{}
	self, _, _ := strings.Cut(target, ":")
	for _, label := range labels {
		if m := external.FindStringSubmatch(label); m != nil {
			repos[m[1]] = true
			continue
		}
		pkg, file, _ := strings.Cut(label, ":")
		// Of our own packages, those that bring Go code, and not its files' names.
		if strings.HasPrefix(pkg, "//") && pkg != self && strings.HasSuffix(file, ".go") {
			own[pkg] = true
		}
	}
	return linked{slices.Sorted(maps.Keys(own)), slices.Sorted(maps.Keys(repos))}
}

var notInAName = regexp.MustCompile(`[^a-z0-9]+`)

// Repository is what gazelle calls a module's repository: k8s.io/client-go is
// io_k8s_client_go.
func Repository(module string) string {
	host, path, _ := strings.Cut(strings.ToLower(module), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Trim(notInAName.ReplaceAllString(strings.Join(parts, "_")+"_"+path, "_"), "_")
}

// requires tells whether go.mod has the module, or one below it.
func requires(goMod, module string) bool {
	lines := bufio.NewScanner(strings.NewReader(goMod))
	for lines.Scan() {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(words) >= 2 && (words[0] == module || strings.HasPrefix(words[0], module+"/")) {
			return true
		}
	}
	return false
}
