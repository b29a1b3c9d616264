package envoy

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// tree is a piece of parsed YAML or JSON of which we know only a few paths.
//
// Bootstraps and dumps are read this way, and not into structs, because
// Envoy decides what is valid: a key twice, a number in quotes, a field of the
// next version must not make us refuse what Envoy would take. Walking fixed
// paths also makes alias bombs harmless: nothing is ever expanded.
type tree struct {
	yaml *yaml.Node
	json json.RawMessage
}

// object maps field names, in snake_case, to their values. JSON null and YAML
// null count as absent, as in protobuf.
type object map[string]tree

func (o object) has(name string) bool { _, ok := o[name]; return ok }

// object is t's fields, empty when t isn't an object.
func (t tree) object() object {
	if t.yaml != nil {
		return yamlObject(t.yaml)
	}
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(t.json, &raw) // another type than object: no fields
	o := make(object, len(raw))
	for key, value := range raw {
		if string(value) != "null" {
			o[snake(key)] = tree{json: value}
		}
	}
	return o
}

func yamlObject(n *yaml.Node) object {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		return nil
	}
	o := make(object, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		// Envoy leaves out what is tagged so: a place to define anchors.
		if key.Tag != "!ignore" && value.Tag != "!!null" {
			o[snake(key.Value)] = tree{yaml: value}
		}
	}
	return o
}

// at follows path through objects.
func (t tree) at(path ...string) tree {
	for _, name := range path {
		t = t.object()[name]
	}
	return t
}

func (t tree) exists() bool { return t.yaml != nil || t.json != nil }

// items is t's elements, none when t isn't a list.
func (t tree) items() []tree {
	if t.yaml == nil {
		var raw []json.RawMessage
		_ = json.Unmarshal(t.json, &raw)
		items := make([]tree, len(raw))
		for i, value := range raw {
			items[i] = tree{json: value}
		}
		return items
	}
	n := resolve(t.yaml)
	if n.Kind != yaml.SequenceNode {
		return nil
	}
	items := make([]tree, len(n.Content))
	for i, value := range n.Content {
		items[i] = tree{yaml: value}
	}
	return items
}

// text is a scalar as it is written, without quotes; "" for anything else.
func (t tree) text() string {
	if t.yaml != nil {
		return resolve(t.yaml).Value
	}
	var s string
	if json.Unmarshal(t.json, &s) == nil {
		return s
	}
	if len(t.json) > 0 && (t.json[0] == '{' || t.json[0] == '[') {
		return ""
	}
	return string(t.json)
}

// truth reads a boolean the way Envoy's YAML reader does ("y" and "on" too).
func (t tree) truth(absent bool) bool {
	switch strings.ToLower(t.text()) {
	case "true", "yes", "y", "on":
		return true
	case "":
		return absent
	}
	return false
}

// port reads a port, quoted or not; 0 for what isn't one.
func (t tree) port() int {
	f, err := strconv.ParseFloat(t.text(), 64) // protobuf's JSON takes 80.0 and "80"
	if err != nil || f != math.Trunc(f) || f < 0 || f > math.MaxUint16 {
		return 0
	}
	return int(f)
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// snake undoes protobuf's JSON names, which Envoy accepts as well.
func snake(name string) string {
	if !strings.ContainsFunc(name, isUpper) {
		return name
	}
	var b strings.Builder
	for _, r := range name {
		if isUpper(r) {
			b.WriteByte('_')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isUpper(r rune) bool { return r >= 'A' && r <= 'Z' }
