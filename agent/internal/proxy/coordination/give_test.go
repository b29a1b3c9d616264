package coordination

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestGiveDir(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	const uid, third = 65532, 65533
	for name, c := range map[string]struct {
		owner int
		mode  fs.FileMode
		want  string // of the error
	}{
		"the kubelet's":              {owner: 0, mode: 0o755},
		"right already":              {owner: uid, mode: 0o700},
		"the user's, open to others": {owner: uid, mode: 0o777},
		"a third user's":             {owner: third, mode: 0o700, want: "belongs to uid 65533"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			makeDir(t, dir, c.owner, c.mode)
			err := GiveDir(dir, uid)
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
				wantDir(t, dir, c.owner, c.mode)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantDir(t, dir, uid, 0o700)
		})
	}
}

func TestGiveDirWantsADirectory(t *testing.T) {
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	if err := GiveDir(link, 65532); err == nil || !strings.Contains(err.Error(), "a symbolic link") {
		t.Errorf("got %v", err)
	}
	if err := GiveDir(link+".missing", 65532); err == nil {
		t.Error("a missing directory was given away")
	}
}

func makeDir(t *testing.T, dir string, owner int, mode fs.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, owner, -1); err != nil {
		t.Fatal(err)
	}
}

func wantDir(t *testing.T, dir string, owner int, mode fs.FileMode) {
	t.Helper()
	fi, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := int(fi.Sys().(*syscall.Stat_t).Uid); got != owner || fi.Mode().Perm() != mode {
		t.Errorf("uid %d, mode %04o; want %d, %04o", got, fi.Mode().Perm(), owner, mode)
	}
}
