// Package charts tests the charts: what both Helms make of them, word by word,
// whether Kubernetes would take it, and what is refused.
package charts

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aether.internal/test/helm"
	"aether.internal/tools/runfile"
)

var update = flag.Bool("update", false, "write golden renders and the tables of values anew")

// root is the repository's directory.
var root = runfile.Root("../..")

// kubeVersion is what the charts are rendered for; a Helm that isn't a release
// believes in one of 2020.
const kubeVersion = "1.35.4"

// charts are all there are, which TestEveryChartIsTested compares.
var charts = []string{"aether-proxy", "atenet-router"}

func TestEveryChartIsTested(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(root, "charts", "*", "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, path := range found {
		names = append(names, filepath.Base(filepath.Dir(path)))
	}
	if !slices.Equal(names, charts) {
		t.Errorf("charts/ has %q, tested are %q", names, charts)
	}
}

func chartDir(chart string) string { return filepath.Join(root, "charts", chart) }

// helms are Helm 3 and Helm 4.
func helms(t *testing.T) []helm.Helm {
	t.Helper()
	var all []helm.Helm
	for _, major := range helm.Majors {
		h, err := helm.Get(t.Context(), root, major)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, h)
	}
	return all
}

// template renders the chart as release "edge" in namespace "prod".
func template(t *testing.T, h helm.Helm, chart string, args ...string) (string, error) {
	t.Helper()
	return h.Run(t.Context(), nil, append([]string{"template", "edge", chartDir(chart),
		"--namespace=prod", "--kube-version=" + kubeVersion}, args...)...)
}

// golden compares text with the file below testdata, or writes that.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(filepath.Join(root, "test", "charts", path), []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(filepath.Join(root, "test", "charts", path))
	if err != nil {
		t.Fatalf("%v; write it with -update", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew); first difference:\n%s", path, firstDifference(string(want), got))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "\ngot  " + g[i]
		}
	}
	return "one is longer"
}
