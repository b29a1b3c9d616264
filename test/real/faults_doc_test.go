package real

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	faultsDoc  = "docs/faults.md"
	repository = "../.."

	tableBegins = "<!-- measured: go test ./test/real -run TestFaults -update -->"
	tableEnds   = "<!-- end -->"
)

// measured is what became of one fault. Times are in milliseconds.
type measured struct {
	Group      string   `json:"group"`
	Name       string   `json:"name"`
	Flag       string   `json:"flag,omitempty"`
	Operations int      `json:"operations"`
	Failed     int      `json:"failed"`
	GapMS      int64    `json:"longest_gap_ms"` // without an answered new connection
	Harm       string   `json:"harm,omitempty"` // why clients noticed
	Said       []string `json:"said"`
	OverMS     int64    `json:"over_ms"` // from the fault until the supervisor had dealt with it
	NextMS     int64    `json:"next_handoff_ms"`
	Exit       int      `json:"exit_code,omitempty"`
	Note       string   `json:"note,omitempty"`
	Skipped    string   `json:"skipped,omitempty"`
}

// faultsJSON is where the rows go; under Bazel, to the test's other outputs.
func faultsJSON() string {
	if dir := os.Getenv("TEST_UNDECLARED_OUTPUTS_DIR"); dir != "" {
		return filepath.Join(dir, "faults.json")
	}
	return filepath.Join(repository, "out", "faults.json")
}

func (m measured) key() string { return m.Group + "\x00" + m.Name + "\x00" + m.Flag }

var results struct {
	sync.Mutex
	rows map[string]measured
}

func record(m measured) {
	results.Lock()
	defer results.Unlock()
	if results.rows == nil {
		results.rows = map[string]measured{}
	}
	results.rows[m.key()] = m
}

// writeMeasured puts this run's rows over those of earlier runs.
func writeMeasured(t *testing.T) {
	results.Lock()
	defer results.Unlock()
	all := map[string]measured{}
	for _, m := range readMeasured() {
		all[m.key()] = m
	}
	for key, m := range results.rows {
		if _, known := all[key]; m.Skipped == "" || !known {
			all[key] = m
		}
	}
	var rows []measured
	for _, f := range faults() {
		if m, ok := all[measured{Group: f.group, Name: f.name, Flag: f.flag}.key()]; ok {
			rows = append(rows, m)
		}
	}
	data, err := json.MarshalIndent(rows, "", "  ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(faultsJSON()), 0o755)
	}
	if err == nil {
		err = os.WriteFile(faultsJSON(), append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Error(err)
	}
}

func readMeasured() []measured {
	var rows []measured
	if data, err := os.ReadFile(faultsJSON()); err == nil {
		_ = json.Unmarshal(data, &rows)
	}
	return rows
}

// TestFaultsAreInTheTable compares the table's rows with the faults that are
// played: names, flags and what is said. What was measured is not compared.
func TestFaultsAreInTheTable(t *testing.T) {
	if *update {
		updateDoc(t)
	}
	doc, err := os.ReadFile(filepath.Join(repository, faultsDoc))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) > 4 && cells[0] != "| fault" {
			got = append(got, cells[0]+" | "+cells[1]+" | "+cells[3])
		}
	}
	for _, f := range faults() {
		m := measured{Name: f.name, Flag: f.flag, Said: f.said, Exit: f.ends}
		want = append(want, "| "+m.Name+" | "+m.flagCell()+" | "+m.saidCell())
	}
	for _, e := range elsewhere {
		want = append(want, "| "+e.name+" |  | "+e.saidCell())
	}
	for _, row := range want {
		if !slices.Contains(got, row) {
			t.Errorf("%s lacks a row; go test ./test/real -run TestFaults -update\n%s", faultsDoc, row)
		}
	}
	for _, row := range got {
		if !slices.Contains(want, row) {
			t.Errorf("%s has a row that no test plays:\n%s", faultsDoc, row)
		}
	}
}

// What is tested elsewhere has a row too, and the test exists.
func TestFaultsTestedElsewhereAreTested(t *testing.T) {
	files, _ := filepath.Glob("*_test.go")
	more, _ := filepath.Glob(repository + "/agent/internal/proxy/*/*_test.go")
	var all strings.Builder
	for _, path := range append(files, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, e := range elsewhere {
		if !regexp.MustCompile(`(?m)^func ` + e.test + `\(`).MatchString(all.String()) {
			t.Errorf("%s: there is no %s", e.name, e.test)
		}
	}
}

// coveredFault is a fault that needs no load, because nothing serves yet or nothing
// happens to what serves.
type coveredFault struct {
	name, said, test string
}

func (e coveredFault) saidCell() string {
	if e.said == "" {
		return "nothing"
	}
	return "`" + e.said + "`"
}

func updateDoc(t *testing.T) {
	path := filepath.Join(repository, faultsDoc)
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		t.Fatalf("%s: no markers", faultsDoc)
	}
	text := before + tableBegins + "\n" + renderTables(t) + "\n" + tableEnds + after
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const tableHead = "| fault | with | clients | the supervisor said | dealt with after | next handoff |\n|---|---|---|---|---|---|\n"

func renderTables(t *testing.T) string {
	rows := map[string]measured{}
	for _, m := range readMeasured() {
		rows[m.key()] = m
	}
	var b strings.Builder
	group := ""
	for _, f := range faults() {
		if f.group != group {
			group = f.group
			fmt.Fprintf(&b, "\n### %s\n\n%s", group, tableHead)
		}
		m, ok := rows[measured{Group: f.group, Name: f.name, Flag: f.flag}.key()]
		if !ok {
			t.Errorf("%s was not measured: is its test failing?", f.title())
		}
		m.Said, m.Exit = f.said, f.ends
		b.WriteString(m.row())
	}
	fmt.Fprintf(&b, "\n### Without load\n\nNothing serves yet, or what serves isn't touched; each has a test of its own.\n\n%s", tableHead)
	for _, e := range elsewhere {
		fmt.Fprintf(&b, "| %s |  | `%s` | %s |  |  |\n", e.name, e.test, e.saidCell())
	}
	return b.String()
}

func (m measured) row() string {
	if m.Skipped != "" {
		return fmt.Sprintf("| %s | %s | not played: %s | %s |  |  |\n", m.Name, m.flagCell(), m.Skipped, m.saidCell())
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |\n", m.Name, m.flagCell(), m.clientsCell(), m.saidCell(), took(m.OverMS), took(m.NextMS))
}

func (m measured) flagCell() string {
	if strings.HasPrefix(m.Flag, "--") {
		return "`" + m.Flag + "`"
	}
	return m.Flag
}

func (m measured) saidCell() string {
	var texts []string
	for _, s := range m.Said {
		texts = append(texts, "`"+s+"`")
	}
	if m.Exit != 0 {
		texts = append(texts, fmt.Sprintf("exit code %d", m.Exit))
	}
	if len(texts) == 0 {
		return "nothing"
	}
	return strings.Join(texts, ", ")
}

func (m measured) clientsCell() string {
	text := fmt.Sprintf("**%d** of %d failed", m.Failed, m.Operations)
	if m.Operations == 0 {
		text = "there are none yet"
	}
	if m.Harm != "" && m.Failed > 0 {
		text += ": " + m.Harm
	}
	if gap := time.Duration(m.GapMS) * time.Millisecond; gap >= 200*time.Millisecond {
		text += fmt.Sprintf("; at most %.1f s without an answer", gap.Seconds())
	}
	if m.Note != "" {
		text += "; " + m.Note
	}
	return text
}

func took(ms int64) string {
	switch {
	case ms == 0:
		return ""
	case ms < 1000:
		return fmt.Sprintf("%d ms", ms)
	}
	return fmt.Sprintf("%.1f s", float64(ms)/1000)
}
