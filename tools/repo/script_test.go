package repo

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The script that judges everything is judged here, on a small repository.

const (
	passes  = "package x\nimport \"testing\"\nfunc TestIt(t *testing.T) {}\n"
	fails   = "package x\nimport \"testing\"\nfunc TestIt(t *testing.T) { t.Error(\"one is not two\") }\n"
	skips   = "package x\nimport \"testing\"\nfunc TestIt(t *testing.T) { t.Skip(\"no moon\") }\n"
	broken  = "package x\nfunc nonsense\n"
	hangs   = "package x\nimport \"testing\"\nfunc TestIt(t *testing.T) { select {} }\n"
	leaves  = "package x\nimport (\"os\"; \"os/exec\"; \"strconv\"; \"testing\")\nfunc TestIt(t *testing.T) {\nc := exec.Command(\"sleep\", \"300\")\nif err := c.Start(); err != nil { t.Fatal(err) }\nos.WriteFile(os.Getenv(\"PID_FILE\"), []byte(strconv.Itoa(c.Process.Pid)), 0o644)\n}\n"
	noEnvoy = "package main\nfunc main() { println(\"no Envoy to be had\"); panic(1) }\n"
)

func TestScript(t *testing.T) {
	for name, c := range map[string]struct {
		files    map[string]string
		exit     int
		says     []string
		lastLine string
	}{
		"all is well": {
			files: map[string]string{"a/a_test.go": passes, "test/real/r_test.go": passes},
			says:  []string{"ok   aether.internal/a (", "pass aether.internal/test/real TestIt"}, lastLine: "2 passed, 0 failed"},
		"a skip is named": {
			files: map[string]string{"a/a_test.go": skips, "test/real/r_test.go": passes},
			says:  []string{"skipped: aether.internal/a TestIt: no moon"}, lastLine: "1 passed, 0 failed, 1 skipped"},
		"what fails and what doesn't build count": {
			files: map[string]string{"a/a_test.go": fails, "b/b_test.go": broken, "test/real/r_test.go": passes},
			exit:  1, says: []string{"one is not two", "failed: aether.internal/b: doesn't build"}, lastLine: "1 passed, 2 failed"},
		"no real tests are no success": {
			files: map[string]string{"a/a_test.go": passes},
			exit:  1, says: []string{"failed: real: go list"}, lastLine: "1 passed, 1 failed"},
		"no Envoy, no tests": {
			files: map[string]string{"a/a_test.go": passes, "tools/envoy/main.go": noEnvoy},
			exit:  1, says: []string{"no Envoy to be had", "failed: prepare"}, lastLine: "0 passed, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			out, exit := runScript(t, smallRepo(t, c.files))
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if exit != c.exit || lines[len(lines)-1] != c.lastLine {
				t.Errorf("exit code %d, want %d; last line %q, want %q", exit, c.exit, lines[len(lines)-1], c.lastLine)
			}
			for _, part := range c.says {
				if !strings.Contains(out, part) {
					t.Errorf("no %q", part)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

func TestScriptEndsWhatATestLeftRunning(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	t.Setenv("PID_FILE", pid)
	dir := smallRepo(t, map[string]string{"a/a_test.go": leaves, "test/real/r_test.go": passes})
	out, exit := runScript(t, dir)
	if exit != 1 || !strings.Contains(out, "failed: unit: nothing left running") || !strings.Contains(out, "sleep 300") {
		t.Errorf("exit code %d:\n%s", exit, out)
	}
	left, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := os.ReadFile("/proc/" + string(left) + "/cmdline"); err == nil && strings.HasPrefix(string(line), "sleep") {
		t.Errorf("process %s still runs", left)
	}
}

func TestScriptEndsWhenTold(t *testing.T) {
	dir := smallRepo(t, map[string]string{"a/a_test.go": hangs, "test/real/r_test.go": passes})
	cmd := script(t.Context(), dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { // the hanging test has begun
		events, _ := os.ReadFile(filepath.Join(dir, "out/test/unit.jsonl"))
		return strings.Contains(string(events), `"Action":"run"`)
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 143 {
		t.Errorf("ended with %v, want exit code 143", err)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v to end", took)
	}
}

// smallRepo is a repository with our scripts, our tally and these files.
func smallRepo(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	put := func(name string, text []byte) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("go.mod", []byte("module aether.internal\n\ngo 1.26.0\n"))
	put("tools/envoy/main.go", []byte("package main\nfunc main() {}\n"))
	sources, err := filepath.Glob(filepath.Join(root, "tools/tally/*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatal("no tally", err)
	}
	for _, source := range append(sources, root+"/tools/test", root+"/tools/go-toolchain") {
		if name, _ := filepath.Rel(root, source); !strings.HasSuffix(name, "_test.go") {
			put(name, read(t, name))
		}
	}
	for name, text := range files {
		put(name, []byte(text))
	}
	return dir
}

// script is the script on its way through what needs no linter.
func script(ctx context.Context, dir string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "tools/test", "unit", "real")
	cmd.Dir = dir
	cmd.WaitDelay = time.Second
	return cmd
}

func runScript(t *testing.T, dir string) (out string, exit int) {
	t.Helper()
	cmd := script(t.Context(), dir)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

func waitFor(t *testing.T, true func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !true() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("waited a minute in vain")
		}
	}
}
