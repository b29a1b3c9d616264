package envoy

import (
	"regexp"
	"strings"
	"testing"
)

// A pin that is half filled in would be noticed only on the machine it is for.
func TestPinsAreComplete(t *testing.T) {
	pins, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	if pins.Versions[pins.Default] == nil {
		t.Errorf("default version %q is not pinned", pins.Default)
	}
	sha := regexp.MustCompile(`^[0-9a-f]{64}$`)
	seen := map[string]string{}
	for version, machines := range pins.Versions {
		for _, machine := range []string{"x86_64", "aarch64"} {
			name, pin := version+" "+machine, machines[machine]
			if !strings.HasSuffix(pin.Platform, "_"+machine) {
				t.Errorf("%s: platform %q is another machine's", name, pin.Platform)
			}
			for _, sum := range []string{pin.WheelSHA256, pin.BinarySHA256} {
				if !sha.MatchString(sum) {
					t.Errorf("%s: %q is no SHA-256", name, sum)
				}
				if other := seen[sum]; other != "" {
					t.Errorf("%s has the hash of %s: %s", name, other, sum)
				}
				seen[sum] = name
			}
		}
	}
}
