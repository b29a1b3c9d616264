package main

import "strings"

// run is everything one `go test -json` reported.
type run struct {
	packages map[string]*pkg
	order    []*pkg              // as they began
	builds   map[string][]string // what the compiler said, by ImportPath
}

// pkg is one package's tests. result is "" until it ended.
type pkg struct {
	name, result, failedBuild string
	elapsed                   float64 // seconds
	output                    []string
	tests                     map[string]*test
	order                     []*test
}

// test is one test or subtest. result is "" until it ended.
type test struct {
	name, result string
	elapsed      float64 // seconds
	output       []string
	parent       bool // has subtests
}

func newRun() *run {
	return &run{packages: map[string]*pkg{}, builds: map[string][]string{}}
}

// add takes in one event.
func (r *run) add(ev event) {
	switch {
	case ev.Action == "build-output":
		r.builds[ev.ImportPath] = append(r.builds[ev.ImportPath], ev.Output)
	case ev.Package == "": // build-fail: its package's own fail follows
	case ev.Test == "":
		r.pkg(ev.Package).add(ev)
	default:
		r.pkg(ev.Package).test(ev.Test).add(ev)
	}
}

func (r *run) pkg(name string) *pkg {
	p := r.packages[name]
	if p == nil {
		p = &pkg{name: name, tests: map[string]*test{}}
		r.packages[name] = p
		r.order = append(r.order, p)
	}
	return p
}

func (p *pkg) add(ev event) {
	switch ev.Action {
	case "output":
		p.output = append(p.output, ev.Output)
	case "pass", "fail", "skip":
		p.result, p.elapsed, p.failedBuild = ev.Action, ev.Elapsed, ev.FailedBuild
	}
}

// test finds or begins a test, and marks those it is a subtest of. A name
// given to t.Run may itself contain slashes, so not each prefix is a test.
func (p *pkg) test(name string) *test {
	if t := p.tests[name]; t != nil {
		return t
	}
	t := &test{name: name}
	p.tests[name] = t
	p.order = append(p.order, t)
	for _, above := range p.above(name) {
		above.parent = true
	}
	return t
}

// above returns the tests that this one is a subtest of.
func (p *pkg) above(name string) []*test {
	var above []*test
	for i := strings.LastIndexByte(name, '/'); i > 0; i = strings.LastIndexByte(name, '/') {
		name = name[:i]
		if t := p.tests[name]; t != nil {
			above = append(above, t)
		}
	}
	return above
}

func (t *test) add(ev event) {
	switch ev.Action {
	case "output":
		t.output = append(t.output, ev.Output)
	case "pass", "fail", "skip":
		t.result, t.elapsed = ev.Action, ev.Elapsed
	}
}
