package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// ran is the events of a test that ran, and its test.xml, as rules_go writes it.
func ran(t *testing.T, label, status string, cases ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.xml")
	text := "<testsuites>\n<testsuite name=\"p\">" + strings.Join(cases, "\n") + "</testsuite>\n</testsuites>"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"id":{"targetCompleted":{"label":%[1]q}},"completed":{"success":true}}
{"id":{"testResult":{"label":%[1]q,"run":1,"attempt":1}},"testResult":{"status":%[2]q,"testActionOutput":[{"name":"test.log","uri":"file:///none"},{"name":"test.xml","uri":"file://%[3]s"}]}}
{"id":{"testSummary":{"label":%[1]q}},"testSummary":{"overallStatus":%[2]q}}
`, label, status, file)
}

const success = `{"id":{"buildFinished":{}},"finished":{"exitCode":{"name":"SUCCESS"}}}` + "\n"

func exit(name string) string { return strings.Replace(success, "SUCCESS", name, 1) }

func pass(name string) string {
	return `<testcase classname="p" name="` + name + `" time="0.1"></testcase>`
}
func fail(name string) string {
	return `<testcase name="` + name + `"><failure message="Failed" type="">--- FAIL</failure></testcase>`
}
func hang(name string) string {
	return `<testcase name="` + name + `"><error message="Interrupted" type=""></error></testcase>`
}
func skip(name, said string) string {
	return `<testcase name="` + name + `"><skipped message="Skipped" type="">` + said + `</skipped></testcase>`
}

func TestCount(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want string // lines, joined by |
	}{
		"a passing test": {ran(t, "//a", "PASSED", pass("A")) + success,
			"1 passed, 0 failed"},
		"subtests count, their passing parent doesn't": {ran(t, "//a", "PASSED", pass("A"), pass("A/x"), pass("A/y")) + success,
			"2 passed, 0 failed"},
		"a failing subtest is one failure, not one for each parent": {ran(t, "//a", "FAILED", fail("A"), fail("A/x"), fail("A/x/1")) + exit("TESTS_FAILED"),
			"failed: //a A/x/1|0 passed, 1 failed"},
		"a parent that fails by itself counts": {ran(t, "//a", "FAILED", fail("A"), pass("A/x")) + exit("TESTS_FAILED"),
			"failed: //a A|1 passed, 1 failed"},
		"a slash in a subtest's name makes no parent": {ran(t, "//a", "FAILED", fail("A"), pass("A/x/1"), fail("A/x/2")) + exit("TESTS_FAILED"),
			"failed: //a A/x/2|1 passed, 1 failed"},
		"a skip is named with its reason": {ran(t, "//a", "PASSED", pass("B"), skip("A", "=== RUN   A\n    a_test.go:3: needs root\n--- SKIP: A (0.00s)\n")) + success,
			"skipped: //a A: needs root|1 passed, 0 failed, 1 skipped"},
		"a skip without a reason says so": {ran(t, "//a", "PASSED", pass("B"), skip("A", "--- SKIP: A (0.00s)\n")) + success,
			"skipped: //a A: no reason given|1 passed, 0 failed, 1 skipped"},
		"one that hangs is the one to blame": {ran(t, "//a", "TIMEOUT", pass("A"), hang("B")) + exit("TESTS_FAILED"),
			"failed: //a B|1 passed, 1 failed"},
		"a target that fails after its tests": {ran(t, "//a", "FAILED", pass("A")) + exit("TESTS_FAILED"),
			"failed: //a: failed outside of its tests|1 passed, 1 failed"},
		"a test without cases would be lost": {ran(t, "//a", "PASSED") + success,
			"failed: //a: passed, but its test.xml has no test|0 passed, 1 failed"},
		"a test that doesn't build": {
			`{"id":{"targetCompleted":{"label":"//a"}},"completed":{}}` + "\n" + `{"id":{"testSummary":{"label":"//a"}},"testSummary":{"overallStatus":"FAILED_TO_BUILD"}}` + "\n" +
				ran(t, "//b", "PASSED", pass("B")) + exit("BUILD_FAILURE"),
			"failed: //a: doesn't build|1 passed, 1 failed"},
		"what is no test and doesn't build": {`{"id":{"targetCompleted":{"label":"//a"}},"aborted":{"reason":"ANALYSIS_FAILURE","description":"no such package 'b'\nmore"}}` + "\n" + exit("PARSING_FAILURE"),
			"failed: //a: doesn't build: no such package 'b'|0 passed, 1 failed"},
		"left out on purpose": {`{"id":{"targetCompleted":{"label":"//a"}},"aborted":{"reason":"SKIPPED"}}` + "\n" + ran(t, "//b", "PASSED", pass("B")) + success,
			"1 passed, 0 failed"},
		"a pattern that names nothing": {`{"id":{"pattern":{"pattern":["//x/..."]}},"aborted":{"reason":"LOADING_FAILURE","description":"no targets found"}}` + "\n" + exit("PARSING_FAILURE"),
			"failed: bazel: LOADING_FAILURE no targets found|0 passed, 1 failed"},
		"Bazel fails for a reason of its own": {ran(t, "//a", "PASSED", pass("A")) + exit("LOCAL_ENVIRONMENTAL_ERROR"),
			"failed: bazel: ended with LOCAL_ENVIRONMENTAL_ERROR|1 passed, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tally(t, count{}, c.log)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestALogThatBreaksOffIsAFailure(t *testing.T) {
	if got := tally(t, count{}, ran(t, "//a", "PASSED", pass("A"))); !strings.Contains(got, " breaks off|1 passed, 1 failed") {
		t.Error(got)
	}
}

func TestAMissingReportIsAFailure(t *testing.T) {
	log := strings.Replace(ran(t, "//a", "PASSED", pass("A")), "test.xml\"}]", "gone.xml\"}]", 1) + success
	if got := tally(t, count{}, log); !strings.Contains(got, "failed: //a: passed, but ") || !strings.HasSuffix(got, "|0 passed, 1 failed") {
		t.Error(got)
	}
}

func TestStepsCount(t *testing.T) {
	steps := count{failures: []finding{{what: "gofmt"}}, skips: []finding{{"govulncheck", "offline"}}}
	got := tally(t, steps, ran(t, "//a", "PASSED", pass("A"))+success)
	if got != "skipped: govulncheck: offline|failed: gofmt|1 passed, 1 failed, 1 skipped" {
		t.Error(got)
	}
}

func TestNothingRanIsAFailure(t *testing.T) {
	if got := tally(t, count{}, success); got != "failed: no test ran|0 passed, 1 failed" {
		t.Error(got)
	}
}

func TestSeveralLogsAreOneCount(t *testing.T) {
	if got := tally(t, count{}, ran(t, "//a", "PASSED", pass("A"))+success, ran(t, "//b", "PASSED", pass("A"))+success); got != "2 passed, 0 failed" {
		t.Error(got)
	}
}

func TestUnreadableEventsAreErrors(t *testing.T) {
	for _, line := range []string{"panic: no JSON\n", `{"id":{"testRes`, "\n"} {
		if err := readEvents(strings.NewReader("{\"id\":{}}\n"+line), func(event) {}); err == nil || !strings.Contains(err.Error(), "event 2") {
			t.Errorf("%q: error %v, want one that names event 2", line, err)
		}
	}
	if _, err := summarise(new(strings.Builder), count{}, []string{"/nonexistent"}); err == nil {
		t.Error("a log that isn't there is no error")
	}
}

// tally is what is printed for these logs, lines joined by |.
func tally(t *testing.T, steps count, logs ...string) string {
	t.Helper()
	var names []string
	for i, text := range logs {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i, ".json"))
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	var out strings.Builder
	if _, err := summarise(&out, steps, names); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "|")
}
