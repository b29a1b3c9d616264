package main

import (
	"strings"
	"testing"
)

// The probe is to cost little more than any Go program does. The bounds are wide:
// measured side by side it is 1.0 to 1.1 times an empty program's, and a busy
// machine makes more of it.
func TestTheProbeCostsLittleMoreThanAnEmptyProgram(t *testing.T) {
	probes, err := prepare(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := measure(probes, 100); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	report(&table, probes)
	t.Log("\n" + table.String())
	empty, ready, agent := probes[0], probes[1], probes[2]
	if r := ready.times(empty, wall); r > 1.5 {
		t.Errorf("from start to exit it takes %.2f times an empty program's time", r)
	}
	if r := ready.times(empty, cpu); r > 2 {
		t.Errorf("it takes %.2f times an empty program's CPU", r)
	}
	if r := agent.times(ready, wall); r < 2 {
		t.Errorf("the agent takes only %.2f times as long: is the probe still worth being a program of its own?", r)
	}
}

func TestProbesThatFailAreNoMeasurement(t *testing.T) {
	p := &probe{name: "false", line: []string{"/bin/false"}}
	if err := measure([]*probe{p}, 1); err == nil {
		t.Error("a probe that fails was measured")
	}
}
