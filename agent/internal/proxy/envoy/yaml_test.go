package envoy

import (
	"encoding/json"
	"testing"

	"go.yaml.in/yaml/v3"
)

func toJSON(t testing.TB, text string) []byte {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
