package repo

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A program that nobody guards grows unseen.
func TestEveryProgramIsGuarded(t *testing.T) {
	mains, err := filepath.Glob(filepath.Join(root, "agent/cmd/*/main.go"))
	if err != nil || len(mains) < 2 {
		t.Fatal(mains, err)
	}
	granted := budgets(t)
	for _, main := range mains {
		dir, _ := filepath.Rel(root, filepath.Dir(main))
		build := string(read(t, dir+"/BUILD.bazel"))
		for _, guard := range []string{"deps_guard_test(", "size_guard_test("} {
			if !strings.Contains(build, "\n"+guard) {
				t.Errorf("%s/BUILD.bazel has no %s…)", dir, guard)
			}
		}
		if !granted["//"+dir] {
			t.Errorf("tools/guard/budgets.txt has no line for //%s", dir)
		}
	}
	for target := range granted {
		if _, err := os.Stat(filepath.Join(root, target)); err != nil {
			t.Errorf("tools/guard/budgets.txt has a line for %s, which is gone", target)
		}
	}
}

func budgets(t *testing.T) map[string]bool {
	t.Helper()
	granted := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ *\d+ (//\S+)`).FindAllStringSubmatch(string(read(t, "tools/guard/budgets.txt")), -1) {
		granted[m[1]] = true
	}
	return granted
}

// Each pinned Envoy has an image, and no other has.
func TestEveryPinnedEnvoyHasAnImage(t *testing.T) {
	version := regexp.MustCompile(`"(1\.\d+\.\d+)"`)
	of := func(file string) map[string]bool {
		found := map[string]bool{}
		for _, m := range version.FindAllStringSubmatch(string(read(t, file)), -1) {
			found[m[1]] = true
		}
		return found
	}
	pinned, images := of("third_party/envoy/pins.json"), of("images/BUILD.bazel")
	if len(pinned) == 0 {
		t.Fatal("no version is found in pins.json")
	}
	for v := range pinned {
		if !images[v] {
			t.Errorf("images/BUILD.bazel has no Envoy %s", v)
		}
	}
	for v := range images {
		if !pinned[v] {
			t.Errorf("images/BUILD.bazel has Envoy %s, which isn't pinned", v)
		}
	}
}
