package charts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"aether.internal/test/helm"
)

// scenario is a file of values that a user may write.
type scenario struct{ chart, name, values string }

func scenarios(t *testing.T) []scenario {
	t.Helper()
	var all []scenario
	for _, chart := range charts {
		files, err := filepath.Glob(filepath.Join(root, "test", "charts", "testdata", chart, "*.values.yaml"))
		if err != nil || len(files) < 3 {
			t.Fatalf("%s has %d scenarios: %v", chart, len(files), err)
		}
		for _, file := range files {
			all = append(all, scenario{chart, strings.TrimSuffix(filepath.Base(file), ".values.yaml"), file})
		}
	}
	return all
}

// Each scenario's manifests are a golden file, the same with Helm 3 and 4, and
// neither finds anything to complain of.
func TestRenders(t *testing.T) {
	both := helms(t)
	for _, s := range scenarios(t) {
		t.Run(s.chart+"/"+s.name, func(t *testing.T) {
			for _, h := range both {
				if out, err := h.Run(t.Context(), nil, "lint", "--strict", chartDir(s.chart), "--values="+s.values, "--kube-version="+kubeVersion); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				out, err := template(t, h, s.chart, "--values="+s.values)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join(s.chart, s.name+".yaml"), withoutBlankLines(out))
			}
		})
	}
}

// withoutBlankLines: the two Helms differ in those around a manifest.
func withoutBlankLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What helm says after an installation is a golden file as well.
func TestNotes(t *testing.T) {
	both := helms(t)
	for _, s := range scenarios(t) {
		t.Run(s.chart+"/"+s.name, func(t *testing.T) {
			for _, h := range both {
				golden(t, filepath.Join(s.chart, s.name+".notes.txt"), notes(t, h, s))
			}
		})
	}
}

// notes renders NOTES.txt as a manifest's text, in a copy of the chart: helm
// itself shows notes only where a cluster answers.
func notes(t *testing.T, h helm.Helm, s scenario) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), s.chart)
	if err := os.CopyFS(dir, os.DirFS(chartDir(s.chart))); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "templates", "NOTES.txt"), filepath.Join(dir, "NOTES.txt")); err != nil {
		t.Fatal(err)
	}
	const manifest = `{kind: Notes, text: {{ tpl (.Files.Get "NOTES.txt") . | toJson }}}`
	if err := os.WriteFile(filepath.Join(dir, "templates", "notes.yaml"), []byte(manifest), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := h.Run(t.Context(), nil, "template", "edge", dir, "--namespace=prod", "--kube-version="+kubeVersion,
		"--values="+s.values, "--show-only=templates/notes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var n struct{ Text string }
	if err := yaml.Unmarshal([]byte(out), &n); err != nil || n.Text == "" {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(n.Text) + "\n"
}

// Two releases on one node must not share a base-id, nor have the one that every
// other Envoy has.
func TestBaseIDsDiffer(t *testing.T) {
	h := helms(t)[0]
	seen := map[string]string{}
	for _, args := range [][]string{{"edge", "prod"}, {"edge", "test"}, {"edge2", "prod"}} {
		out, err := h.Run(t.Context(), nil, "template", args[0], chartDir("aether-proxy"), "--namespace="+args[1],
			"--kube-version="+kubeVersion, "--set=proxy.hotRestart.enabled=true")
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(out, "--base-id=")
		id, _, _ := strings.Cut(rest, "\n")
		if id == "" || id == "0" || seen[id] != "" {
			t.Errorf("%v: base-id %q, that of %q", args, id, seen[id])
		}
		seen[id] = strings.Join(args, " in ")
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
