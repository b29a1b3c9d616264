package charts

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// value is one key of a values.yaml that a user may set.
type value struct{ key, fallback, meaning string }

// The table in a chart's README is made of values.yaml and its comments.
func TestReadmeHasEveryValue(t *testing.T) {
	const open, end = "<!-- values -->\n", "<!-- /values -->"
	for _, chart := range charts {
		path := filepath.Join(chartDir(chart), "README.md")
		before, rest, ok := strings.Cut(readFile(t, path), open)
		_, after, okEnd := strings.Cut(rest, end)
		if !ok || !okEnd {
			t.Fatalf("%s has no section between %q and %q", path, open, end)
		}
		want := before + open + valuesTable(t, chart) + end + after
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := readFile(t, path); got != want {
			t.Errorf("%s isn't what values.yaml says (-update writes it anew); first difference:\n%s", path, firstDifference(want, got))
		}
	}
}

func valuesTable(t *testing.T, chart string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| value | default | meaning |\n|---|---|---|\n")
	for _, v := range values(t, chart) {
		if v.meaning == "" {
			t.Errorf("%s: %s has no comment in values.yaml", chart, v.key)
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", v.key, v.fallback, v.meaning)
	}
	return b.String()
}

func values(t *testing.T, chart string) []value {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(chartDir(chart), "values.yaml"))), &doc); err != nil {
		t.Fatal(err)
	}
	all := collect(nil, "", doc.Content[0])
	if len(all) < 20 {
		t.Fatalf("only %d values found in %s", len(all), chart)
	}
	return all
}

// collect goes down to where a comment stands: below it, a mapping is a value.
func collect(all []value, prefix string, mapping *yaml.Node) []value {
	for i := 0; i < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		meaning := comment(key)
		if content.Kind == yaml.MappingNode && len(content.Content) > 0 && meaning == "" {
			all = collect(all, prefix+key.Value+".", content)
			continue
		}
		all = append(all, value{prefix + key.Value, flow(content), meaning})
	}
	return all
}

// comment is the block directly above a key, as one line.
func comment(key *yaml.Node) string {
	blocks := strings.Split(key.HeadComment, "\n\n")
	var words []string
	for line := range strings.Lines(blocks[len(blocks)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.Join(words, " ")
}

func flow(n *yaml.Node) string {
	var v any
	if n.Decode(&v) != nil {
		return n.Value
	}
	data, err := json.Marshal(v)
	if err != nil {
		return n.Value
	}
	return string(data)
}

// Every value is in the schema, and the other way round; an object that isn't
// Kubernetes' own refuses what it doesn't know.
func TestSchemaHasEveryValue(t *testing.T) {
	for _, chart := range charts {
		var schema map[string]any
		if err := json.Unmarshal([]byte(readFile(t, filepath.Join(chartDir(chart), "values.schema.json"))), &schema); err != nil {
			t.Fatal(err)
		}
		var known, want []string
		s := schemaReader{t: t, definitions: schema["definitions"].(map[string]any)}
		s.keys(&known, "", schema)
		for _, v := range values(t, chart) {
			want = append(want, v.key)
		}
		known = slices.DeleteFunc(known, func(key string) bool { return key == "global" }) // helm's own
		for _, key := range want {
			if !slices.ContainsFunc(known, func(k string) bool { return k == key || strings.HasPrefix(k, key+".") }) {
				t.Errorf("%s: values.schema.json doesn't know %s", chart, key)
			}
		}
		for _, key := range known {
			if !slices.ContainsFunc(want, func(w string) bool { return w == key || strings.HasPrefix(key, w+".") }) {
				t.Errorf("%s: values.schema.json knows %s, which values.yaml doesn't have", chart, key)
			}
		}
	}
}

type schemaReader struct {
	t           *testing.T
	definitions map[string]any
}

func (s schemaReader) keys(all *[]string, prefix string, node map[string]any) {
	if ref, ok := node["$ref"].(string); ok {
		node = s.definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
	}
	properties, ok := node["properties"].(map[string]any)
	if !ok {
		*all = append(*all, strings.TrimSuffix(prefix, "."))
		return
	}
	if node["additionalProperties"] != false {
		s.t.Errorf("values.schema.json: %q takes keys that it doesn't know", prefix)
	}
	for name, below := range properties {
		s.keys(all, prefix+name+".", below.(map[string]any))
	}
}
