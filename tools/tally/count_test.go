package main

import (
	"fmt"
	"strings"
	"testing"
)

// ev makes an event of "action[ test][: output]", all in package p.
func ev(short string) event {
	head, output, _ := strings.Cut(short, ": ")
	action, test, _ := strings.Cut(head, " ")
	return event{Action: action, Package: "p", Test: test, Output: output + "\n"}
}

func TestCount(t *testing.T) {
	for name, c := range map[string]struct {
		events []string
		want   string
	}{
		"a passing test": {
			[]string{"run A", "pass A", "pass"},
			"1 passed, 0 failed"},
		"subtests count, their passing parent doesn't": {
			[]string{"run A", "run A/x", "run A/y", "pass A/x", "pass A/y", "pass A", "pass"},
			"2 passed, 0 failed"},
		"a failing subtest is one failure, not one for each parent": {
			[]string{"run A", "run A/x", "run A/x/1", "fail A/x/1", "fail A/x", "fail A", "fail"},
			"failed: p A/x/1|0 passed, 1 failed"},
		"a parent that fails by itself counts": {
			[]string{"run A", "run A/x", "pass A/x", "fail A", "fail"},
			"failed: p A|1 passed, 1 failed"},
		"a slash in a subtest's name makes no parent": {
			[]string{"run A", "run A/x/1", "run A/x/2", "pass A/x/1", "fail A/x/2", "fail A", "fail"},
			"failed: p A/x/2|1 passed, 1 failed"},
		"a skip is named with its reason": {
			[]string{"run A", "output A: === RUN   A", "output A:     a_test.go:3: needs root", "output A: --- SKIP: A (0.00s)", "skip A", "pass"},
			"skipped: p A: needs root|0 passed, 0 failed, 1 skipped"},
		"a skip without a reason says so": {
			[]string{"run A", "output A: --- SKIP: A (0.00s)", "skip A", "pass"},
			"skipped: p A: no reason given|0 passed, 0 failed, 1 skipped"},
		"no result is a failure": {
			[]string{"run A", "pass A", "run B"},
			"failed: p B: didn't finish|1 passed, 1 failed"},
		"no result of a subtest is one failure": {
			[]string{"run A", "run A/x", "fail"},
			"failed: p A/x: didn't finish|0 passed, 1 failed"},
		"a package that ends nowhere is a failure": {
			[]string{"start", "run A", "pass A"},
			"failed: p: left no result|1 passed, 1 failed"},
		"a package that fails after its tests is a failure": {
			[]string{"run A", "pass A", "output: exit status 3", "fail"},
			"failed: p: failed outside of its tests|1 passed, 1 failed"},
		"a package without tests is nothing": {
			[]string{"start", "output: ?   p [no test files]", "skip"},
			"0 passed, 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun()
			for _, short := range c.events {
				r.add(ev(short))
			}
			var out strings.Builder
			sum := r.count()
			sum.print(&out)
			if got := strings.ReplaceAll(strings.TrimSpace(out.String()), "\n", "|"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestSameNamesInOtherPackagesAreOtherTests(t *testing.T) {
	r := newRun()
	for _, p := range []string{"p", "q"} {
		r.add(event{Action: "pass", Package: p, Test: "A"})
		r.add(event{Action: "pass", Package: p})
	}
	if got := fmt.Sprint(r.count()); got != "2 passed, 0 failed" {
		t.Error(got)
	}
}

func TestUnreadableEventsAreErrors(t *testing.T) {
	for _, line := range []string{"panic: no JSON\n", `{"Action":"pass","Pack`, "\n"} {
		if err := readEvents(strings.NewReader(`{"Action":"start"}`+"\n"+line), func(event) {}); err == nil || !strings.Contains(err.Error(), "event 2") {
			t.Errorf("%q: error %v, want one that names event 2", line, err)
		}
	}
}

func TestLongLines(t *testing.T) {
	var got event
	long := strings.Repeat("x", 1<<20)
	if err := readEvents(strings.NewReader(`{"Output":"`+long+`"}`), func(e event) { got = e }); err != nil || got.Output != long {
		t.Errorf("%d bytes, %v", len(got.Output), err)
	}
}
