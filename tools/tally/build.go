package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// build is what one run of Bazel did.
type build struct {
	log     string
	targets map[string]*target // by label
	order   []*target
	aborted []finding // what is wrong before there are targets: patterns, packages
	exit    string    // "" until it ended
}

// target is a test, or anything that doesn't build.
type target struct {
	label, status string // status is "" for what is no test, or never ran
	broken        string // why it doesn't build
	cases         []testCase
	unreadable    error // its test.xml
}

// event is one line of Bazel's build event log in JSON, of which there is a
// protocol buffer, build_event_stream.proto: only what is counted.
type event struct {
	ID struct {
		TestResult      *labelled
		TestSummary     *labelled
		TargetCompleted *labelled
		BuildFinished   *struct{}
		Pattern         *struct{ Pattern []string }
	}
	TestResult *struct {
		Status           string
		TestActionOutput []struct{ Name, URI string }
	}
	TestSummary *struct{ OverallStatus string }
	Completed   *struct{ Success bool }
	Aborted     *struct{ Reason, Description string }
	Finished    *struct{ ExitCode struct{ Name string } }
}

type labelled struct{ Label string }

func readLog(name string) (*build, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &build{log: name, targets: map[string]*target{}}
	return b, readEvents(f, b.add)
}

// readEvents hands each event on. A line that is no event is an error: what
// can't be read can't be counted, and must not pass for "nothing failed".
func readEvents(r io.Reader, add func(event)) error {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n') // a line may have any length
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

func (b *build) add(ev event) {
	switch id := ev.ID; {
	case ev.Finished != nil:
		b.exit = ev.Finished.ExitCode.Name
	case id.TestResult != nil && ev.TestResult != nil:
		t := b.target(id.TestResult.Label)
		t.status = ev.TestResult.Status
		for _, out := range ev.TestResult.TestActionOutput {
			if out.Name == "test.xml" {
				t.cases, t.unreadable = readCases(strings.TrimPrefix(out.URI, "file://"))
			}
		}
	case id.TestSummary != nil && ev.TestSummary != nil:
		if t := b.target(id.TestSummary.Label); t.status == "" {
			t.status = ev.TestSummary.OverallStatus
		}
	case id.TargetCompleted != nil:
		b.completed(id.TargetCompleted.Label, ev)
	case ev.Aborted != nil && !skipped(ev.Aborted.Reason):
		b.aborted = append(b.aborted, finding{"bazel", firstLine(ev.Aborted.Reason + " " + ev.Aborted.Description)})
	}
}

// completed is about building: a test's own result has another event.
func (b *build) completed(label string, ev event) {
	switch {
	case ev.Aborted != nil && !skipped(ev.Aborted.Reason):
		b.target(label).broken = "doesn't build: " + firstLine(ev.Aborted.Description)
	case ev.Aborted == nil && (ev.Completed == nil || !ev.Completed.Success):
		b.target(label).broken = "doesn't build"
	}
}

// skipped is what Bazel was told not to do.
func skipped(reason string) bool { return reason == "SKIPPED" || reason == "NO_BUILD" }

func (b *build) target(label string) *target {
	t := b.targets[label]
	if t == nil {
		t = &target{label: label}
		b.targets[label], b.order = t, append(b.order, t)
	}
	return t
}

func (b *build) count() count {
	var c count
	slices.SortStableFunc(b.order, func(x, y *target) int { return strings.Compare(x.label, y.label) })
	for _, t := range b.order {
		c.add(t.count())
	}
	if len(c.failures) == 0 { // else they say it better
		c.failures = append(c.failures, b.aborted...)
	}
	switch {
	case b.exit == "":
		c.failures = append(c.failures, finding{"bazel", b.log + " breaks off"})
	case b.exit != "SUCCESS" && len(c.failures) == 0:
		c.failures = append(c.failures, finding{"bazel", "ended with " + b.exit})
	}
	return c
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
