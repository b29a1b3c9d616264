package coordination

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStateDirIsOurs(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(path string) error
		want string // part of the error; "": none
	}{
		{"missing", func(string) error { return nil }, ""},
		{"ours", func(p string) error { return mkdir(p, 0o700) }, ""},
		{"readable", func(p string) error { return mkdir(p, 0o755) }, ""},
		{"group-writable", func(p string) error { return mkdir(p, 0o770) }, "mode 0770 lets others write (owner: us"},
		{"world-writable", func(p string) error { return mkdir(p, 0o777) }, "mode 0777 lets others write"},
		{"a file", func(p string) error { return os.WriteFile(p, nil, 0o600) }, "a regular file (owner: uid "},
		{"a link", func(p string) error { return os.Symlink(os.TempDir(), p) }, "a symbolic link (owner: uid "},
		{"stranger's", func(p string) error { return errors.Join(mkdir(p, 0o700), os.Chown(p, 12345, -1)) }, "belongs to uid 12345"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state")
			if err := c.put(path); errors.Is(err, os.ErrPermission) {
				t.Skip("needs root: ", err)
			} else if err != nil {
				t.Fatal(err)
			}
			err := EnsureStateDir(path + "/")
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)) {
				t.Errorf("error %v; want %q and the path", err, c.want)
			}
		})
	}
}

func TestStateDirIsCreatedWithItsParents(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "aether", "hotrestart")
	if err := EnsureStateDir(path); err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != os.ModeDir|0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o600)
	if err := EnsureStateDir(filepath.Join(file, "x", "y")); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("below a file: %v", err)
	}
}

func mkdir(path string, mode os.FileMode) error {
	return errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)) // whatever the umask
}

func TestRuntimeDir(t *testing.T) {
	xdg, tmp := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", tmp)
	own := filepath.Join(tmp, fmt.Sprintf("aether-%d", os.Geteuid()))
	for name, c := range map[string]struct{ xdg, want string }{
		"ours":     {xdg, filepath.Join(xdg, "aether")},
		"unset":    {"", own},
		"relative": {"run", own},
		"missing":  {filepath.Join(xdg, "absent"), own},
	} {
		t.Setenv("XDG_RUNTIME_DIR", c.xdg)
		if got := RuntimeDir(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	t.Setenv("XDG_RUNTIME_DIR", "")
	if err := EnsureStateDir(filepath.Join(own, "hotrestart")); err != nil {
		t.Error(err)
	}
	if fi, err := os.Stat(own); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", fi, err)
	}
	os.Chmod(own, 0o777) // somebody could have put it there before us
	if err := EnsureStateDir(filepath.Join(own, "hotrestart")); err == nil || !strings.Contains(err.Error(), own) {
		t.Errorf("below an open runtime directory: %v", err)
	}
}
