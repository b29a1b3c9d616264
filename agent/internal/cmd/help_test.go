package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// Every command's help is a golden file, and every golden file a command's.
func TestHelp(t *testing.T) {
	seen := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" {
			return
		}
		args := strings.Fields(c.CommandPath())
		name := strings.Join(args, "-") + ".txt"
		seen[name] = true
		w := newWorld()
		if code := w.main(append(args[1:], "--help")); code != 0 || w.err.Len() != 0 {
			t.Errorf("%s --help: exit code %d, %s", c.CommandPath(), code, w.err.String())
		}
		golden(t, filepath.Join("help", name), w.out.String())
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(newWorld().root())
	files, err := os.ReadDir("testdata/help")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !seen[f.Name()] {
			t.Errorf("testdata/help/%s is of no command", f.Name())
		}
	}
}

const docs = "../../../docs/"

// Docs that quote a default which the code no longer has are worse than none.
func TestReferenceTables(t *testing.T) {
	for _, c := range []struct{ file, name, table string }{
		{"reference.md", "flags", flagTables(newWorld().root())},
		{"reference.md", "exit-codes", exitTables()},
		{"telemetry.md", "metrics", metricsTable(hotrestart.Instruments)},
	} {
		doc, err := os.ReadFile(docs + c.file)
		if err != nil {
			t.Fatal(err)
		}
		open, end := "<!-- "+c.name+" -->\n", "<!-- /"+c.name+" -->"
		before, rest, ok := strings.Cut(string(doc), open)
		got, after, closed := strings.Cut(rest, end)
		if !ok || !closed {
			t.Fatalf("%s has no section between %q and %q", c.file, open, end)
		}
		if *update {
			if err := os.WriteFile(docs+c.file, []byte(before+open+c.table+end+after), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if got != c.table {
			t.Errorf("the section %q of docs/%s differs (-update writes it anew); want:\n%s", c.name, c.file, c.table)
		}
	}
}

func TestExitCodesAreUnique(t *testing.T) {
	for command, rows := range map[string][]exitCode{"proxy-supervisor": supervisorExits, "proxyctl": proxyctlExits} {
		seen := map[int]bool{}
		for _, row := range rows {
			if seen[row.code] || row.meaning == "" || row.then == "" {
				t.Errorf("%s: row %d is doubled or has gaps", command, row.code)
			}
			seen[row.code] = true
		}
	}
}

func TestShortDuration(t *testing.T) {
	for in, want := range map[string]string{"2m0s": "2m", "1h0m0s": "1h", "1m30s": "1m30s", "25s": "25s", "1h10m0s": "1h10m", "10m": "10m"} {
		if got := shortDuration(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
