package cmd

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"aether.internal/agent/internal/proxy/control"
)

// published are the schemas below docs/schema, of what -o json prints.
var published = map[string]reflect.Type{
	"status":  reflect.TypeFor[control.Status](),
	"history": reflect.TypeFor[control.History](),
	"doctor":  reflect.TypeFor[control.Diagnosis](),
}

// The published schema is that of the code, and every golden output is of it.
func TestPublishedSchemas(t *testing.T) {
	comments := fieldComments(t)
	for name, typ := range published {
		schema, err := jsonschema.ForType(typ, nil)
		if err != nil {
			t.Fatal(err)
		}
		schema.Schema = "https://json-schema.org/draft/2020-12/schema"
		schema.Title = "agent proxyctl " + name + " -o json"
		describe(schema, typ, comments)
		data, err := json.MarshalIndent(schema, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		path := docs + "schema/" + name + ".json"
		if *update {
			write(t, path, string(data)+"\n")
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSpace(got), data) {
			t.Errorf("%s differs from the code (-update writes it anew)", path)
		}
		checkGoldens(t, name, got)
	}
}

// checkGoldens judges by the published file, as a stranger would.
func checkGoldens(t *testing.T, name string, file []byte) {
	t.Helper()
	var schema jsonschema.Schema
	if err := json.Unmarshal(file, &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	goldens, err := filepath.Glob(filepath.Join("testdata", name, "*.json"))
	if err != nil || len(goldens) == 0 {
		t.Fatalf("no golden output of %s (%v)", name, err)
	}
	for _, golden := range goldens {
		instance := map[string]any{}
		data, err := os.ReadFile(golden)
		if err == nil {
			err = json.Unmarshal(data, &instance)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(instance); err != nil {
			t.Errorf("%s: %v", golden, err)
		}
		instance["no such field"] = 1
		if resolved.Validate(instance) == nil {
			t.Errorf("%s: an unknown field is accepted", golden)
		}
		if resolved.Validate(map[string]any{}) == nil {
			t.Errorf("%s: an empty answer is accepted", name)
		}
	}
}

// describe adds the comments of the Go fields.
func describe(s *jsonschema.Schema, typ reflect.Type, comments map[string]string) {
	for typ.Kind() == reflect.Slice || typ.Kind() == reflect.Pointer {
		if s.Items != nil {
			s = s.Items
		}
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || s.Properties == nil {
		return
	}
	for _, f := range reflect.VisibleFields(typ) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		property := s.Properties[name]
		if property == nil {
			continue
		}
		owner := typ
		if len(f.Index) > 1 {
			owner = typ.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		}
		property.Description = strings.ReplaceAll(comments[owner.Name()+"."+f.Name], "None", "-1")
		describe(property, f.Type, comments)
	}
}

// fieldComments are the comments of the API's fields, by "Type.Field".
func fieldComments(t *testing.T) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, name := range []string{"status.go", "api.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "proxy", "control", name), nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if body, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range body.Fields.List {
					for _, field := range f.Names {
						comments[spec.Name.Name+"."+field.Name] = strings.TrimSpace(f.Comment.Text())
					}
				}
			}
			return true
		})
	}
	if comments["EpochStatus.TimeLeftSeconds"] == "" {
		t.Fatal("the comments aren't found")
	}
	return comments
}
