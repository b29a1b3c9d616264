package configwatch

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fsnotify/fsnotify"
)

func TestRouteOfAConfigMap(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	configMap(t, dir, "..2026_1", "v1")
	want := []place{{dir, "config"}, {dir, "..data"}, {dir + "/..2026_1", "config"}}
	if got := route(dir + "/config"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	want = []place{{dir, "absent"}}
	if got := route(dir + "/absent/below/config"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	os.Symlink("loop", filepath.Join(dir, "loop"))
	if got := route(dir + "/loop"); len(got) == 0 || len(got) > maxLinks+1 {
		t.Errorf("a loop has %d places", len(got))
	}
}

func TestIsSwap(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write(t, path("new"), "x")
	write(t, path("old"), "x")
	os.Chtimes(path("old"), t0, t0)
	write(t, path("empty"), "")
	os.Chtimes(path("empty"), t0, t0)
	os.Mkdir(path("dir"), 0o755)
	ev := func(name string, op fsnotify.Op) fsnotify.Event { return fsnotify.Event{Name: path(name), Op: op} }
	for _, c := range []struct {
		name       string
		before, ev fsnotify.Event
		want       bool
	}{
		{"created in place", fsnotify.Event{}, ev("new", fsnotify.Create), false},
		{"written", fsnotify.Event{}, ev("old", fsnotify.Write), false},
		{"older than its inode's change", fsnotify.Event{}, ev("old", fsnotify.Create), true},
		{"renamed within a tick", ev("tmp", fsnotify.Rename), ev("new", fsnotify.Create), true},
		{"put aside, then created", ev("new", fsnotify.Rename), ev("new", fsnotify.Create), false},
		{"renamed in another directory", fsnotify.Event{Name: "/tmp/x", Op: fsnotify.Rename}, ev("new", fsnotify.Create), false},
		{"still empty", ev("tmp", fsnotify.Rename), ev("empty", fsnotify.Create), false},
		{"..data", fsnotify.Event{}, ev("..data", fsnotify.Create), true},
		{"vanished", ev("tmp", fsnotify.Rename), ev("absent", fsnotify.Create), false},
		{"a directory made", fsnotify.Event{}, ev("dir", fsnotify.Create), false},
	} {
		if got := isSwap(c.before, c.ev); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
