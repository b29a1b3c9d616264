package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sample is a module with one package for each way to end.
var sample = map[string]string{
	"go.mod":                "module sample\ngo 1.26\n",
	"good/good_test.go":     "package good\nimport \"testing\"\nfunc TestA(t *testing.T) { t.Run(\"x\", func(t *testing.T) {}); t.Run(\"y\", func(t *testing.T) { t.Skip(\"no \" + \"need\") }) }\n",
	"bad/bad_test.go":       "package bad\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Run(\"x\", func(t *testing.T) { t.Error(\"one is not two\") }) }\n",
	"panics/p_test.go":      "package panics\nimport \"testing\"\nfunc TestC(t *testing.T) { panic(\"out of cheese\") }\n",
	"hangs/h_test.go":       "package hangs\nimport \"testing\"\nfunc TestD(t *testing.T) { select {} }\n",
	"exits/e_test.go":       "package exits\nimport (\"os\"; \"testing\")\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(3) }\nfunc TestE(t *testing.T) {}\n",
	"unbuildable/u.go":      "package unbuildable\nvar x int = \"text\"\n",
	"unbuildable/u_test.go": "package unbuildable\nimport \"testing\"\nfunc TestF(t *testing.T) {}\n",
	"empty/e.go":            "package empty\n",
}

// What the go command of today says about each is what we count.
func TestRealRun(t *testing.T) {
	events := runSample(t)
	var told strings.Builder
	failed, err := follow(strings.NewReader(events), &told, true)
	if err != nil || failed != 5 {
		t.Errorf("follow() = %d, %v; want 5 failures", failed, err)
	}
	wantLines(t, told.String(),
		"skip sample/good TestA/y (", ": no need", "ok   sample/good (", "1 passed, 0 failed, 1 skipped",
		"one is not two", "out of cheese", "test timed out", "pass sample/exits TestE",
		"cannot use \"text\"", "none sample/empty has no tests")

	file := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, []byte(events), 0o644); err != nil {
		t.Fatal(err)
	}
	var summary strings.Builder
	if failed, err := summarise(&summary, []string{"vet"}, []string{file}); err != nil || failed != 6 {
		t.Errorf("summarise() = %d, %v; want 6 failures", failed, err)
	}
	wantLines(t, summary.String(),
		"skipped: sample/good TestA/y: no need",
		"failed: sample/bad TestB/x\n", "failed: sample/panics TestC", "failed: sample/hangs TestD",
		"failed: sample/exits: failed outside of its tests", "failed: sample/unbuildable: doesn't build",
		"failed: vet\n")
	if !strings.HasSuffix(summary.String(), "\n2 passed, 6 failed, 1 skipped\n") {
		t.Errorf("last line of:\n%s", summary.String())
	}
}

func TestNothingRanIsAFailure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	failed, err := summarise(&out, nil, []string{file})
	if want := "failed: no test ran\n0 passed, 1 failed\n"; failed != 1 || err != nil || out.String() != want {
		t.Errorf("%d, %v, %q; want %q", failed, err, out.String(), want)
	}
}

func TestMissingFileIsAnError(t *testing.T) {
	var out strings.Builder
	if _, err := summarise(&out, nil, []string{"/nonexistent"}); err == nil || out.Len() > 0 {
		t.Errorf("error %v, printed %q", err, out.String())
	}
}

// runSample returns the events of `go test` on the sample.
func runSample(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sample {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-timeout=1s", "-json", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	out, err := cmd.Output()
	if err == nil {
		t.Fatal("go test passed on the sample")
	}
	return string(out)
}

func wantLines(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}
