package main

import (
	"strings"
	"testing"
)

func TestOverload(t *testing.T) {
	if got := overload(9.9, 2); got != "" {
		t.Errorf("%q", got)
	}
	if got := overload(33.2, 2); !strings.Contains(got, "33 want to run on 2 cores") {
		t.Errorf("%q", got)
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
