// Tally counts what `go test -json` reported; tools/test ends with its last
// line, "N passed, N failed" or "N passed, N failed, N skipped".
//
//	go test -json ./... | tally -progress [-v]      # stdin, told as it happens
//	tally [-failed STEP]... out/test/*.jsonl        # the count of several runs
//
// What counts as one: a test without subtests. A test with subtests counts
// only when it failed or was skipped itself, while its subtests did not. A
// package that failed with no failed test to blame (it didn't build, it
// panicked, it timed out, it left no result) is one failure, and so is each
// step named with -failed. A run in which nothing passed or failed is a
// failure too. Exit code 1 when anything failed, 2 when used wrongly.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	var steps []string
	progress := flag.Bool("progress", false, "read events from stdin and tell them as they come")
	verbose := flag.Bool("v", false, "with -progress: a line for each test, not only for each package")
	flag.Func("failed", "a `step` other than a test that failed (repeatable)", func(step string) error {
		steps = append(steps, step)
		return nil
	})
	flag.Parse()
	if *progress {
		finish(follow(os.Stdin, os.Stdout, *verbose))
	}
	finish(summarise(os.Stdout, steps, flag.Args()))
}

// finish exits with the code that belongs to the result.
func finish(failed int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
	os.Exit(0)
}

// follow tells events as they come and returns how many tests failed.
func follow(r io.Reader, w io.Writer, verbose bool) (failed int, err error) {
	t := teller{w: w, verbose: verbose, run: newRun()}
	if err := readEvents(r, t.tell); err != nil {
		return 0, err
	}
	return len(t.run.count().failures), nil
}

// summarise prints failures, skips and, last, the count.
func summarise(w io.Writer, steps, files []string) (failed int, err error) {
	var sum count
	for _, file := range files {
		r, err := readFile(file)
		if err != nil {
			return 0, err
		}
		sum.add(r.count())
	}
	for _, step := range steps {
		sum.failures = append(sum.failures, finding{what: step})
	}
	if sum.passed == 0 && len(sum.failures) == 0 {
		sum.failures = append(sum.failures, finding{what: "no test ran"})
	}
	sum.print(w)
	return len(sum.failures), nil
}

func readFile(name string) (*run, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := newRun()
	return r, readEvents(f, r.add)
}
