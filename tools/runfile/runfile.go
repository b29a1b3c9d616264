// Package runfile finds the files that Bazel gives to a test.
package runfile

import (
	"os"
	"path/filepath"
)

// Path is the file that an environment variable names: as it is, or, when it
// is relative and Bazel runs the test, below the test's runfiles. A target says
// it so: env = {"AGENT": "$(rlocationpath //agent/cmd/agent)"}. Empty when the
// variable is, as under plain `go test`.
func Path(variable string) string {
	path, runfiles := os.Getenv(variable), os.Getenv("TEST_SRCDIR")
	if path == "" || filepath.IsAbs(path) || runfiles == "" {
		return path
	}
	return filepath.Join(runfiles, path)
}

// Root is the repository's directory, given that it is at this path as seen from
// the test's package. Bazel's runfiles have but a few links of it: one of them,
// named by $TREE, leads to the real one. Such a test has to be tagged "local"
// and "external", because Bazel doesn't know what it reads.
func Root(otherwise string) string {
	if link := Path("TREE"); link != "" {
		if file, err := filepath.EvalSymlinks(link); err == nil {
			return filepath.Dir(file)
		}
	}
	return otherwise
}
