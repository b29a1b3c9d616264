package router

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The table is made by
//
//	go test ./test/router -run TestDays -update
var update = flag.Bool("update", false, "write what was measured to docs/drain-faults.md")

const (
	doc         = "../../docs/drain-faults.md"
	tableBegins = "<!-- measured: go test ./test/router -run TestDays -update -->\n"
	tableEnds   = "<!-- end -->"
	tableHead   = "| what happens | clients | the router said | the pod was gone after |\n|---|---|---|---|\n"
)

// measured is what became of a day.
type measured struct {
	clients, ok int
	took        time.Duration
	killed      bool
	skipped     bool
}

// TestDays plays every day; nobody may be harmed who can be helped.
func TestDays(t *testing.T) {
	var mu sync.Mutex
	results := map[string]measured{}
	t.Run("plays", func(t *testing.T) {
		for _, d := range days {
			t.Run(d.name, func(t *testing.T) {
				if !d.apart {
					t.Parallel()
				}
				m := measured{skipped: true}
				defer func() {
					mu.Lock()
					defer mu.Unlock()
					results[d.name] = m
				}()
				m = d.run(t)
			})
		}
	})
	if *update && !t.Failed() {
		write(t, results)
	}
}

func (d day) run(t *testing.T) measured {
	p, g := gated(t)
	if d.grace > 0 {
		p.grace = d.grace
	}
	m := measured{}
	m.clients, m.ok = d.play(p, g)
	m.took, m.killed = p.gone(), p.killed.Load()
	for _, said := range d.said {
		if !p.router.said(said) {
			t.Errorf("the router did not say %q", said)
		}
	}
	if d.harm == "" && m.ok != m.clients {
		t.Errorf("%d of %d clients were harmed", m.clients-m.ok, m.clients)
	}
	if d.harm == "" && d.grace == 0 { // nothing was to go wrong at all
		p.wentWell()
	}
	t.Logf("%d of %d clients whole, gone after %v", m.ok, m.clients, m.took)
	return m
}

// TestTheTableHasEveryDay compares names and sayings; what was measured is not
// compared.
func TestTheTableHasEveryDay(t *testing.T) {
	data, err := os.ReadFile(doc)
	check(t, err)
	var got, want []string
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 4 && cells[0] != "| what happens" {
			got = append(got, cells[0]+" | "+cells[2])
		}
	}
	for _, d := range days {
		want = append(want, "| "+d.name+" | "+d.saidCell())
	}
	for _, row := range want {
		if !slices.Contains(got, row) {
			t.Errorf("%s lacks a row; go test ./test/router -run TestDays -update\n%s", doc, row)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has %d rows, %d are played", doc, len(got), len(want))
	}
}

func (d day) saidCell() string {
	var texts []string
	for _, s := range d.said {
		texts = append(texts, "`"+s+"`")
	}
	if len(texts) == 0 {
		return "nothing more"
	}
	return strings.Join(texts, ", ")
}

func write(t *testing.T, results map[string]measured) {
	var b strings.Builder
	group := ""
	for _, d := range days {
		if d.group != group {
			group = d.group
			fmt.Fprintf(&b, "\n### %s\n\n%s", group, tableHead)
		}
		b.WriteString(d.row(results[d.name]))
	}
	data, err := os.ReadFile(doc)
	check(t, err)
	before, rest, ok1 := strings.Cut(string(data), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		t.Fatalf("%s: no markers", doc)
	}
	check(t, os.WriteFile(doc, []byte(before+tableBegins+b.String()+"\n"+tableEnds+after), 0o644))
}

func (d day) row(m measured) string {
	clients := fmt.Sprintf("**%d** of %d failed", m.clients-m.ok, m.clients)
	switch {
	case m.skipped:
		clients = "not played"
	case m.clients == 0:
		clients = "there are none"
	}
	if m.clients > m.ok {
		clients += ": " + d.harm
	}
	if d.note != "" {
		clients += "; " + d.note
	}
	took := fmt.Sprintf("%.1f s", m.took.Seconds())
	if m.killed {
		took += ", killed"
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", d.name, clients, d.saidCell(), took)
}
