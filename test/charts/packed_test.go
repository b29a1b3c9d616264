package charts

import (
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/tools/runfile"
)

// The packed chart is the directory: both render to the same.
func TestPackedCharts(t *testing.T) {
	h := helms(t)[0]
	for _, chart := range charts {
		archive := packed(t, chart)
		got, err := h.Run(t.Context(), nil, "template", "edge", archive, "--namespace=prod", "--kube-version="+kubeVersion)
		if err != nil {
			t.Fatal(err)
		}
		want, err := template(t, h, chart)
		if err != nil {
			t.Fatal(err)
		}
		if got != want || want == "" {
			t.Errorf("%s renders otherwise when packed:\n%s", chart, firstDifference(want, got))
		}
		for _, kind := range []string{"readme", "values", "chart"} {
			if out, err := h.Run(t.Context(), nil, "show", kind, archive); err != nil || strings.TrimSpace(out) == "" {
				t.Errorf("%s: helm show %s: %q, %v", chart, kind, out, err)
			}
		}
	}
}

// packed is the archive that Bazel made, or one made just as it would.
func packed(t *testing.T, chart string) string {
	t.Helper()
	if path := runfile.Path("CHART_" + strings.ToUpper(strings.ReplaceAll(chart, "-", "_"))); path != "" {
		return path
	}
	archive := filepath.Join(t.TempDir(), chart+".tgz")
	args := []string{"run", "./tools/chart", "-o", archive}
	err := filepath.WalkDir(chartDir(chart), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, path)
		args = append(args, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return archive
}
