package main

import (
	"fmt"
	"io"
	"strings"
)

// teller tells a run as it happens: a line per package, all output of what
// failed, the reason of each skip.
type teller struct {
	w       io.Writer
	verbose bool
	run     *run
}

func (t *teller) tell(ev event) {
	t.run.add(ev)
	if ev.Action != "pass" && ev.Action != "fail" && ev.Action != "skip" || ev.Package == "" {
		return
	}
	p := t.run.pkg(ev.Package)
	if ev.Test == "" {
		t.pkg(p)
		return
	}
	t.test(p, p.test(ev.Test))
}

// test tells one that ended.
func (t *teller) test(p *pkg, one *test) {
	label := fmt.Sprintf("%s %s (%.2fs)", p.name, one.name, one.elapsed)
	switch {
	case one.result == "fail":
		fmt.Fprintln(t.w, "FAIL", label)
		t.output(one.output)
	case one.result == "skip":
		fmt.Fprintf(t.w, "skip %s: %s\n", label, one.reason())
	case t.verbose && !strings.Contains(one.name, "/"):
		fmt.Fprintln(t.w, "pass", label)
	}
	one.output = one.output[:0:0] // told: a long run must not keep it
}

// pkg tells one that ended.
func (t *teller) pkg(p *pkg) {
	if p.result == "skip" { // of a package that means: no test files
		fmt.Fprintln(t.w, "none", p.name, "has no tests")
		return
	}
	c := p.count()
	if p.result == "pass" {
		fmt.Fprintf(t.w, "ok   %s (%.2fs): %s\n", p.name, p.elapsed, c)
		return
	}
	fmt.Fprintf(t.w, "FAIL %s (%.2fs): %s\n", p.name, p.elapsed, c)
	t.output(t.run.builds[p.failedBuild])
	for _, one := range p.order {
		if one.result == "" {
			fmt.Fprintln(t.w, "FAIL", p.name, one.name, "didn't finish")
			t.output(one.output)
		}
	}
	t.output(p.output)
}

// output tells lines of a test or compiler, set off from our own.
func (t *teller) output(lines []string) {
	text := strings.TrimSuffix(strings.Join(lines, ""), "\n")
	if text == "" {
		return
	}
	fmt.Fprintln(t.w, "    "+strings.ReplaceAll(text, "\n", "\n    "))
}
