package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		args      string
		out, fail string
	}{
		"versions":         {args: "-print versions", out: "1.40.0\n1.39.3\n1.36.4"},
		"unknown version":  {args: "-version 9", fail: "envoy 9: no such version"},
		"unknown print":    {args: "-print wheels", fail: "can print path or versions"},
		"stray argument":   {args: "1.40.0", fail: `unexpected argument "1.40.0"`},
		"own, not usable":  {args: "", fail: "ENVOY=/nonexistent can't be used"},
		"own, not printed": {args: "-version 9 -print path", fail: "no such version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ENVOY", "/nonexistent")
			out, err := run(t.Context(), strings.Fields(c.args))
			if out != c.out {
				t.Errorf("printed %q, want %q", out, c.out)
			}
			if c.fail == "" && err != nil || c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)) {
				t.Errorf("error %v, want %q", err, c.fail)
			}
		})
	}
}
