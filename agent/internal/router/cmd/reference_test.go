package cmd

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/router"
)

var update = flag.Bool("update", false, "write the tables of "+doc)

const doc = "../../../../docs/router.md"

// The tables of flags and metrics in the documentation are those of the code.
func TestTheTablesOfTheReference(t *testing.T) {
	data, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for name, table := range map[string]string{"flags": flagTable(), "metrics": metricTable()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		before, rest, ok1 := strings.Cut(text, begin)
		old, after, ok2 := strings.Cut(rest, end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no markers for %s", doc, name)
		}
		if old != table && !*update {
			t.Errorf("%s: the table of %s is out of date; go test ./agent/internal/router/cmd -update\n%s", doc, name, table)
		}
		text = before + begin + table + end + after
	}
	if *update {
		if err := os.WriteFile(doc, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func flagTable() string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | meaning |\n|---|---|---|---|\n")
	command(io.Discard, none).Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		value := ""
		if f.DefValue != "" {
			value = "`" + strings.TrimSuffix(f.DefValue, "0s") + "`"
		}
		if f.Name == "grace-period" {
			value = "`60s`"
		}
		fmt.Fprintf(&b, "| `--%s %s` | `%s` | %s | %s |\n", f.Name, strings.ToUpper(name), envName(f.Name), value, usage)
	})
	return b.String()
}

func metricTable() string {
	var b strings.Builder
	b.WriteString("| name | kind | unit | attributes | meaning |\n|---|---|---|---|---|\n")
	for _, i := range router.Instruments {
		fmt.Fprintf(&b, "| `%s%s` | %s | `%s` | %s | %s |\n", router.Prefix, i.Name, i.Kind, i.Unit, i.Attributes, i.Meaning)
	}
	return b.String()
}
