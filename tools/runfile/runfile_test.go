package runfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPath(t *testing.T) {
	for _, c := range []struct{ value, runfiles, want string }{
		{"", "", ""},
		{"", "/runfiles", ""},
		{"/a/b", "/runfiles", "/a/b"},
		{"_main/a/b", "/runfiles", "/runfiles/_main/a/b"},
		{"a/b", "", "a/b"}, // plain go test: as the user gave it
	} {
		t.Setenv("A_FILE", c.value)
		t.Setenv("TEST_SRCDIR", c.runfiles)
		if got := Path("A_FILE"); got != c.want {
			t.Errorf("%q below %q: %q, want %q", c.value, c.runfiles, got, c.want)
		}
	}
}

func TestRootIsWhereTheLinkLeads(t *testing.T) {
	real, links := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(real, "go.mod"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(real, "go.mod"), filepath.Join(links, "go.mod")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_SRCDIR", links)
	t.Setenv("TREE", "go.mod")
	if got := Root("../.."); got != real {
		t.Errorf("%q, want %q", got, real)
	}
	t.Setenv("TREE", "")
	if got := Root("../.."); got != "../.." {
		t.Errorf("without a link: %q", got)
	}
}
