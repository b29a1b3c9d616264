package main

import (
	"strings"
	"testing"

	"aether.internal/test/load"
)

func TestOverloaded(t *testing.T) {
	if overloaded(9.9, 2) || !overloaded(10, 2) {
		t.Error("want five for each core")
	}
}

func TestLighterIsAThird(t *testing.T) {
	target := load.Target{HTTP: "h:1", TLS: "t:2"}
	full, light := plan(target), lighter(target)
	for i, k := range full.Kinds {
		if got := light.Kinds[i]; got.Kind != k.Kind || got.Rate != k.Rate/3 {
			t.Errorf("%+v of %+v", got, k)
		}
	}
}

func TestField(t *testing.T) {
	text := "processor\t: 0\nmodel name\t: A CPU: fast\nmodel name\t: another\n"
	for name, want := range map[string]string{"model name": "A CPU: fast", "processor": "0", "flags": ""} {
		if got := field(text, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestEveryFactIsThere(t *testing.T) {
	s := &stage{envoys: envoys{old: envoy{version: "1"}, new: envoy{version: "2"}}}
	for _, f := range facts(s) {
		if f.Name == "" || f.Text == "" || strings.Contains(f.Text, "not known") {
			t.Errorf("%+v", f)
		}
	}
}
