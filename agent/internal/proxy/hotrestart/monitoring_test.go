package hotrestart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const monitoring = "../../../../docs/monitoring"

// expressions are all that a file asks Prometheus for: the values of every "expr".
func expressions(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(monitoring, file))
	if err != nil {
		t.Fatal(err)
	}
	var doc any
	if strings.HasSuffix(file, ".json") {
		err = json.Unmarshal(data, &doc)
	} else {
		err = yaml.Unmarshal(data, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if text, ok := inner.(string); ok && key == "expr" {
					found = append(found, text)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(doc)
	if len(found) < 6 {
		t.Fatalf("only %d expressions in %s", len(found), file)
	}
	return found
}

// series are the names that Prometheus' OTLP receiver gives to an instrument.
func series(in Instrument) []string {
	name := strings.ReplaceAll(Prefix+in.Name, ".", "_")
	if in.Unit == "s" {
		name += "_seconds"
	}
	switch in.Kind {
	case Counter:
		return []string{name + "_total"}
	case Histogram:
		return []string{name + "_bucket", name + "_count", name + "_sum"}
	}
	return []string{name}
}

var (
	seriesName = regexp.MustCompile(`aether_supervisor_\w+`)
	asRate     = regexp.MustCompile(`\b(?:rate|increase)\((aether_supervisor_\w+)`)
	selector   = regexp.MustCompile(`(aether_supervisor_\w+)\{(\w+)[=!~]+"([^"$]*)"`)
)

// A dashboard of a metric that is called otherwise by now shows calm, whatever
// happens; and a raw counter shows a fall at each restart.
func TestDashboardAndAlertsNameMetricsThatThereAre(t *testing.T) {
	known := map[string]Instrument{}
	for _, in := range Instruments {
		for _, s := range series(in) {
			known[s] = in
		}
	}
	for _, file := range []string{"alerts.yaml", "dashboard.json"} {
		shown := map[string]bool{}
		for _, expr := range expressions(t, file) {
			raw := seriesName.FindAllString(expr, -1)
			for _, s := range raw {
				if known[s].Name == "" {
					t.Errorf("%s: there is no metric %s", file, s)
				}
				shown[known[s].Name] = true
			}
			for _, m := range asRate.FindAllStringSubmatch(expr, -1) {
				raw = slices.Delete(raw, slices.Index(raw, m[1]), slices.Index(raw, m[1])+1)
			}
			for _, s := range raw {
				if known[s].Kind != Gauge {
					t.Errorf("%s: %s is read raw in %q, and only its rate or increase means anything", file, s, expr)
				}
			}
			for _, m := range selector.FindAllStringSubmatch(expr, -1) {
				if in := known[m[1]]; in.Key != m[2] || !slices.Contains(in.Values, m[3]) {
					t.Errorf("%s: %s has no %s=%q", file, m[1], m[2], m[3])
				}
			}
		}
		for _, in := range Instruments {
			if file == "dashboard.json" && !shown[in.Name] {
				t.Errorf("%s doesn't show %s", file, in.Name)
			}
		}
	}
}

func TestSeriesNames(t *testing.T) {
	for _, c := range []struct {
		in   Instrument
		want string
	}{
		{Instrument{Name: "handoff.duration", Kind: Histogram, Unit: "s"}, "aether_supervisor_handoff_duration_seconds_bucket"},
		{Instrument{Name: "child_exits", Kind: Counter, Unit: "{process}"}, "aether_supervisor_child_exits_total"},
		{Instrument{Name: "epoch", Kind: Gauge, Unit: "{epoch}"}, "aether_supervisor_epoch"},
	} {
		if got := series(c.in)[0]; got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
