package script

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The script is judged on a small repository, with a bazel that does as the test
// says.

// root is the repository's, seen from this package.
const root = "../.."

// fakeBazel answers as little as tools/test asks. What a ring's run is like is in
// a file of the ring's name: shell that may write to $log, and its exit code.
const fakeBazel = `#!/bin/bash
case $1 in
--version|shutdown) ;;
info) echo "$FAKE/base" ;;
test)
	for arg; do
		case $arg in
		--build_event_json_file=*) log=${arg#*=} ;;
		--config=*) ring=${ring:-${arg#*=}} ;;
		esac
	done
	. "$FAKE/$ring" ;;
*) echo "unexpected: $*"; exit 7 ;;
esac
`

// ran is what a ring's run is like when one target with these cases ran.
func ran(status string, cases ...string) string {
	code, end := 0, "SUCCESS"
	if status != "PASSED" {
		code, end = 3, "TESTS_FAILED"
	}
	return fmt.Sprintf(`cat >"$log.xml" <<END
<testsuites><testsuite>%s</testsuite></testsuites>
END
cat >"$log" <<END
{"id":{"testResult":{"label":"//a:a_test"}},"testResult":{"status":"%s","testActionOutput":[{"name":"test.xml","uri":"file://$log.xml"}]}}
{"id":{"buildFinished":{}},"finished":{"exitCode":{"name":"%s"}}}
END
exit %d
`, strings.Join(cases, ""), status, end, code)
}

const (
	passes = `<testcase name="TestIt"></testcase>`
	fails  = `<testcase name="TestBad"><failure>one is not two</failure></testcase>`
	skips  = `<testcase name="TestIt"><skipped>    it_test.go:3: no moon</skipped></testcase>`
	hangs  = "touch \"$FAKE/hangs\"\nexec sleep 300\n"
	leaves = "TEST_SRCDIR=$FAKE/base/x setsid sleep 300 >/dev/null 2>&1 &\necho $! >\"$FAKE/pid\"\n"
)

func TestScript(t *testing.T) {
	well := ran("PASSED", passes)
	for name, c := range map[string]struct {
		unit, real string
		exit       int
		says       []string
		lastLine   string
	}{
		"all is well":        {well, well, 0, []string{"== unit: bazel test --config=unit --config=race //..."}, "2 passed, 0 failed"},
		"a skip is named":    {ran("PASSED", skips), well, 0, []string{"skipped: //a:a_test TestIt: no moon"}, "1 passed, 0 failed, 1 skipped"},
		"a failure":          {ran("FAILED", passes, fails), well, 1, []string{"failed: //a:a_test TestBad"}, "2 passed, 1 failed"},
		"a Bazel that can't": {"exit 37\n", well, 1, []string{"failed: unit: bazel left no event log"}, "1 passed, 1 failed"},
		"a log that breaks off": {`echo '{"id":{"started":{}}}' >"$log"; exit 37` + "\n", well, 1,
			[]string{"out/test/unit.json breaks off"}, "1 passed, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := smallRepo(t, map[string]string{"unit": c.unit, "real": c.real})
			out, exit := runScript(t, dir)
			lines := strings.Split(strings.TrimSpace(out), "\n")
			if exit != c.exit || lines[len(lines)-1] != c.lastLine {
				t.Errorf("exit code %d, want %d; last line %q, want %q", exit, c.exit, lines[len(lines)-1], c.lastLine)
			}
			for _, part := range append(c.says, "prepare ") {
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
	dir := smallRepo(t, map[string]string{"unit": leaves + ran("PASSED", passes), "real": ran("PASSED", passes)})
	out, exit := runScript(t, dir)
	if exit != 1 || !strings.Contains(out, "failed: unit: nothing left running") || !strings.Contains(out, "sleep 300") {
		t.Errorf("exit code %d:\n%s", exit, out)
	}
	left, err := os.ReadFile(filepath.Join(dir, "fake/pid"))
	if err != nil {
		t.Fatal(err)
	}
	if line, err := os.ReadFile("/proc/" + strings.TrimSpace(string(left)) + "/cmdline"); err == nil && strings.HasPrefix(string(line), "sleep") {
		t.Errorf("process %s still runs", left)
	}
}

func TestScriptEndsWhenTold(t *testing.T) {
	dir := smallRepo(t, map[string]string{"unit": hangs})
	cmd := script(t.Context(), dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		_, err := os.Stat(filepath.Join(dir, "fake/hangs"))
		return err == nil
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

func TestScriptKnowsItsSteps(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "tools/test", "units")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "units is none of lint, build, unit") {
		t.Errorf("%v: %s", err, out)
	}
}

// smallRepo is a repository with our scripts, our tally, and a bazel of which
// each ring's run is as told.
func smallRepo(t *testing.T, rings map[string]string) string {
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
	put("fake/bin/bazel", []byte(fakeBazel))
	sources, err := filepath.Glob(filepath.Join(root, "tools/tally/*.go"))
	if err != nil || len(sources) == 0 {
		t.Fatal("no tally", err)
	}
	for _, source := range append(sources, root+"/tools/test", root+"/tools/go-toolchain") {
		if name, _ := filepath.Rel(root, source); !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(source)
			if err != nil {
				t.Fatal(err)
			}
			put(name, text)
		}
	}
	for ring, run := range rings {
		put("fake/"+ring, []byte(run))
	}
	return dir
}

// script is the script on its way through two rings.
func script(ctx context.Context, dir string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "tools/test", "unit", "real")
	cmd.Dir = dir
	fake := filepath.Join(dir, "fake")
	cmd.Env = append(os.Environ(), "FAKE="+fake, "PATH="+fake+"/bin:"+os.Getenv("PATH"))
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
