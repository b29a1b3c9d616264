package main

import (
	"fmt"
	"io"
	"strings"
)

// count is the result of one or more runs.
type count struct {
	passed          int
	failures, skips []finding
}

// finding names a test, target or step, and says why.
type finding struct{ what, why string }

func (c *count) add(other count) {
	c.passed += other.passed
	c.failures = append(c.failures, other.failures...)
	c.skips = append(c.skips, other.skips...)
}

func (c *count) print(w io.Writer) {
	for _, f := range c.skips {
		fmt.Fprintln(w, "skipped:", f)
	}
	for _, f := range c.failures {
		fmt.Fprintln(w, "failed:", f)
	}
	fmt.Fprintln(w, c)
}

// String is the line that tools/test ends with.
func (c count) String() string {
	line := fmt.Sprintf("%d passed, %d failed", c.passed, len(c.failures))
	if len(c.skips) > 0 {
		line += fmt.Sprintf(", %d skipped", len(c.skips))
	}
	return line
}

func (f finding) String() string {
	if f.why == "" {
		return f.what
	}
	return f.what + ": " + f.why
}

// count follows the rules in the command's documentation.
func (t *target) count() count {
	var c count
	parents, blamed := t.parents()
	for _, one := range t.cases {
		what := t.label + " " + one.Name
		switch {
		case one.bad() && !blamed[one.Name]:
			c.failures = append(c.failures, finding{what: what})
		case one.bad():
		case one.Skipped != nil:
			c.skips = append(c.skips, finding{what, one.reason()})
		case !parents[one.Name]:
			c.passed++
		}
	}
	if why := t.verdict(); why != "" && len(c.failures) == 0 {
		c.failures = append(c.failures, finding{t.label, why})
	}
	return c
}

// parents are the tests that have subtests, and those one of whose subtests went
// wrong: that one counts. A slash in a subtest's own name makes no parent, since
// there is no test of the name before it.
func (t *target) parents() (parents, blamed map[string]bool) {
	parents, blamed = map[string]bool{}, map[string]bool{}
	for _, one := range t.cases {
		for i, letter := range one.Name {
			if letter == '/' {
				above := one.Name[:i]
				parents[above] = true
				blamed[above] = blamed[above] || one.bad()
			}
		}
	}
	return parents, blamed
}

// verdict says what is wrong with the target as a whole, "" for nothing.
func (t *target) verdict() string {
	switch {
	case t.status == "" || t.status == "FAILED_TO_BUILD":
		return t.broken
	case t.status != "PASSED":
		return strings.ToLower(t.status) + " outside of its tests"
	case t.unreadable != nil:
		return "passed, but " + t.unreadable.Error()
	case len(t.cases) == 0:
		// It would be lost: a test.xml without -v has failures only.
		return "passed, but its test.xml has no test"
	}
	return ""
}
