package main

import (
	"testing"

	"aether.internal/test/node"
)

// at is a sight of one serving epoch.
func at(epoch int, tag, version string) sight {
	return sight{tag: tag, status: node.Status{
		Serving: epoch, Ready: true, State: "serving",
		Epochs: []node.Epoch{{Epoch: epoch, State: "serving", EnvoyVersion: version}},
	}}
}

func with(s sight, change func(*sight)) sight {
	change(&s)
	return s
}

func TestWants(t *testing.T) {
	before := at(3, "v4", "1.39.3")
	failed := func(step string) func(*sight) {
		return func(s *sight) { s.log.refused++; s.status.LastFailure = &node.Failure{Step: step} }
	}
	for _, c := range []struct {
		name string
		met  func(before, now sight) bool
		now  sight
		want bool
	}{
		{"serves", serves("v5", ""), at(4, "v5", "1.39.3"), true},
		{"serves another bootstrap", serves("v5", ""), at(4, "v4", "1.39.3"), false},
		{"serves another binary", serves("v4", "1.40.0"), at(4, "v4", "1.39.3"), false},
		{"serves and isn't ready", serves("v5", ""), with(at(4, "v5", ""), func(s *sight) { s.status.Ready = false }), false},
		{"nobody serves", serves("", ""), with(at(4, "", ""), func(s *sight) { s.status.Serving = -1 }), false},
		{"another serves", another(serves("v4", "")), at(4, "v4", ""), true},
		{"the same serves", another(serves("v4", "")), before, false},
		{"refused", refused("validate"), with(before, failed("validate")), true},
		{"refused elsewhere", refused("validate"), with(before, failed("start")), false},
		{"not refused", refused("validate"), before, false},
		{"refused, and another serves", refused("validate"), with(at(4, "v5", ""), failed("validate")), false},
		{"refused earlier", refused("validate"), with(before, func(s *sight) { s.status.LastFailure = &node.Failure{Step: "validate"} }), false},
		{"taken back and healed", takenBack("v4"), with(at(4, "v4", ""), func(s *sight) { s.log.takenBack++ }), true},
		{"taken back and not healed", takenBack("v4"), with(before, func(s *sight) { s.log.takenBack++ }), false},
		{"never taken back", takenBack("v4"), at(4, "v4", ""), false},
		{"taken back, and another serves", takenBack("v4"), with(at(4, "port taken", ""), func(s *sight) { s.log.takenBack++ }), false},
		{"unchanged", unchanged, with(before, func(s *sight) { s.log.unchanged++ }), true},
		{"nothing seen", unchanged, before, false},
		{"answers", answers, with(before, func(s *sight) { s.done = 1 }), true},
		{"no answers", answers, with(before, func(s *sight) { s.failed = 1 }), false},
	} {
		if got := c.met(before, c.now); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
