package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// event is one line of `go test -json` (see `go doc test2json` and
// `go help buildjson`).
type event struct {
	Action      string  // run, output, pass, fail, skip, build-output, …
	Package     string  // import path
	Test        string  // "" for what concerns the whole package
	Output      string  // with output and build-output
	Elapsed     float64 // seconds, with pass, fail, skip
	ImportPath  string  // with build-output: what was being built
	FailedBuild string  // with a package's fail: the ImportPath to blame
}

// readEvents hands each event on. A line that is no event is an error: what
// can't be read can't be counted, and must not pass for "nothing failed".
func readEvents(r io.Reader, add func(event)) error {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n') // a line of output may have any length
		if len(line) > 0 {
			var ev event
			if err := json.Unmarshal(line, &ev); err != nil {
				return fmt.Errorf("event %d is unreadable (%w): %.200q", n, err, line)
			}
			add(ev)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
