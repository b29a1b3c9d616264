package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
)

// count is the result of one or more runs.
type count struct {
	passed          int
	failures, skips []finding
}

// finding names a test, package or step, and says why.
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

func (r *run) count() count {
	var sum count
	for _, p := range r.order {
		sum.add(p.count())
	}
	return sum
}

// count follows the rules in the command's documentation.
func (p *pkg) count() count {
	var c count
	blamed := p.blamed()
	for _, t := range p.order {
		what := p.name + " " + t.name
		switch {
		case t.result == "skip":
			c.skips = append(c.skips, finding{what, t.reason()})
		case t.result == "pass" && !t.parent:
			c.passed++
		case t.bad() && !blamed[t]:
			c.failures = append(c.failures, finding{what, t.verdict()})
		}
	}
	if why := p.verdict(); why != "" && len(c.failures) == 0 {
		c.failures = append(c.failures, finding{p.name, why})
	}
	return c
}

// blamed are the tests one of whose subtests went wrong: that one counts.
func (p *pkg) blamed() map[*test]bool {
	blamed := map[*test]bool{}
	for _, t := range p.order {
		if t.bad() {
			for _, above := range p.above(t.name) {
				blamed[above] = true
			}
		}
	}
	return blamed
}

// bad tells whether the test failed, or has no result at all.
func (t *test) bad() bool { return t.result == "fail" || t.result == "" }

func (t *test) verdict() string {
	if t.result == "" {
		return "didn't finish"
	}
	return ""
}

// verdict says what is wrong with the package as a whole, "" for nothing.
func (p *pkg) verdict() string {
	switch {
	case p.failedBuild != "":
		return "doesn't build"
	case p.result == "fail":
		return "failed outside of its tests"
	case p.result == "":
		return "left no result"
	}
	return ""
}

var position = regexp.MustCompile(`^\S+\.go:\d+: `)

// reason is what was given to t.Skip: the last line logged.
func (t *test) reason() string {
	reason := "no reason given"
	for _, out := range t.output {
		line := strings.TrimSpace(out)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			reason = position.ReplaceAllString(line, "")
		}
	}
	return reason
}
