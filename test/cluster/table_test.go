package cluster

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	tableDoc    = "docs/kubernetes-tests.md"
	tableBegins = "<!-- measured: bazel test //test/cluster:cluster_test; go test ./test/cluster -run TestTable -update FILE -->"
	tableEnds   = "<!-- end -->"
	tableHead   = "| scenario | rolls | requests | failed | longest gap | restarts | took |\n|---|---|---|---|---|---|---|\n"
)

var update = flag.String("update", "", "cluster.json of a run, to write into "+tableDoc)

// measured is what became of one scenario.
type measured struct {
	Name       string `json:"name"`
	Rolls      int    `json:"rolls"`
	Operations int    `json:"operations"`
	Failed     int    `json:"failed"`
	GapMS      int64  `json:"longest_gap_ms"` // without an answered new connection
	Restarts   int    `json:"restarts"`       // of containers
	Harm       string `json:"harm,omitempty"` // why clients noticed
	Seconds    int    `json:"seconds"`
}

func (m measured) title() string {
	if m.Harm == "" {
		return m.Name
	}
	return m.Name + " (" + m.Harm + ")"
}

func (m measured) cells() string {
	return fmt.Sprintf("| %s | %d | %d | **%d** | %.2f s | %d | %d s |\n",
		m.title(), m.Rolls, m.Operations, m.Failed, float64(m.GapMS)/1000, m.Restarts, m.Seconds)
}

var results struct {
	sync.Mutex
	rows []measured
}

func record(m measured) {
	results.Lock()
	defer results.Unlock()
	results.rows = append(results.rows, m)
}

// write leaves the rows among the test's other outputs.
func writeMeasured() error {
	dir := os.Getenv("TEST_UNDECLARED_OUTPUTS_DIR")
	if dir == "" {
		dir = filepath.Join(repository, "out")
	}
	results.Lock()
	defer results.Unlock()
	data, err := json.MarshalIndent(results.rows, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "cluster.json"), append(data, '\n'), 0o644)
}

// TestTable compares the table's rows with what is played: names and reasons, not
// what was measured.
func TestTable(t *testing.T) {
	path := filepath.Join(repository, tableDoc)
	if *update != "" {
		updateTable(t, path)
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(doc)) {
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| ") && len(cells) == 7 && cells[0] != "| scenario" {
			got = append(got, strings.TrimPrefix(cells[0], "| "))
		}
	}
	var want []string
	for _, s := range scenarios() {
		want = append(want, measured{Name: s.name, Harm: s.harm}.title())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has rows\n%s\nand the tests play\n%s", tableDoc, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// scenarios are all rows, in the order of the table.
func scenarios() []scenario {
	return slices.Concat(inPlaceScenarios, rollScenarios, dayScenarios, probeScenarios, adoptionScenarios, machineScenarios)
}

func updateTable(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(*update)
	if err != nil {
		t.Fatal(err)
	}
	var rows []measured
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	table.WriteString(tableHead)
	for _, s := range scenarios() {
		i := slices.IndexFunc(rows, func(m measured) bool { return m.Name == s.name })
		if i < 0 {
			t.Fatalf("%s has no %q: did its test fail?", *update, s.name)
		}
		rows[i].Harm = s.harm
		table.WriteString(rows[i].cells())
	}
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(doc), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no markers", tableDoc)
	}
	text := before + tableBegins + "\n\n" + table.String() + "\n" + tableEnds + after
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
