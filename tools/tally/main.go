// Tally counts what Bazel's tests did, from the build event log of each run and
// the test.xml of each test; tools/test ends with its last line, "N passed, N
// failed" or "N passed, N failed, N skipped".
//
//	bazel test --build_event_json_file=a.json //...
//	tally [-failed STEP]... [-skipped 'STEP: WHY']... a.json b.json
//
// What counts as one: a test function or subtest without subtests. One with
// subtests counts only when it failed or was skipped itself, while its subtests
// did not. A target that failed with no failed test to blame (it didn't build, it
// panicked, it timed out, it left no result) is one failure, and so are a log
// that breaks off, a Bazel that failed for another reason, and each step named
// with -failed. A run in which nothing passed or failed is a failure too. Exit
// code 1 when anything failed, 2 when used wrongly.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	var steps count
	flag.Func("failed", "a `step` other than a test that failed (repeatable)", func(step string) error {
		steps.failures = append(steps.failures, finding{what: step})
		return nil
	})
	flag.Func("skipped", "a `step: reason` that was not done (repeatable)", func(step string) error {
		what, why, _ := strings.Cut(step, ": ")
		steps.skips = append(steps.skips, finding{what, why})
		return nil
	})
	flag.Parse()
	failed, err := summarise(os.Stdout, steps, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// summarise prints failures, skips and, last, the count.
func summarise(w io.Writer, steps count, logs []string) (failed int, err error) {
	var sum count
	for _, name := range logs {
		b, err := readLog(name)
		if err != nil {
			return 0, err
		}
		sum.add(b.count())
	}
	sum.add(steps)
	if sum.passed == 0 && len(sum.failures) == 0 {
		sum.failures = append(sum.failures, finding{what: "no test ran"})
	}
	sum.print(w)
	return len(sum.failures), nil
}
