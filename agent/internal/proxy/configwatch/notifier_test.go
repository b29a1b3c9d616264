package configwatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// B52.
func TestNoInotifyInstance(t *testing.T) {
	n := newNotifier()
	n.open = func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }
	dirs := map[string]bool{t.TempDir(): true}
	if _, err := n.Follow(dirs); !errors.Is(err, syscall.EMFILE) || !strings.Contains(err.Error(), "max_user_instances") {
		t.Error(err)
	}
	if n.Events() != nil {
		t.Error("events out of nothing")
	}
	n.Close()
	n.open = fsnotify.NewWatcher // somebody gave one back
	if news, err := n.Follow(dirs); !news || err != nil {
		t.Errorf("%v, %v", news, err)
	}
	n.Close()
}

func TestPollingOnDisk(t *testing.T) {
	n := newNotifier()
	n.open = func() (*fsnotify.Watcher, error) { return nil, syscall.EMFILE }
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "v1")
	o, _ := Options{ConfigPath: path, Poll: 5 * time.Millisecond, Settle: time.Millisecond}.complete()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	told := false
	w := newWatcher(o, n, func(c Change) { told = c.Config; cancel() })
	w.config.tracker.reported = hashOf("v0")
	w.run(ctx)
	if !told {
		t.Error("nothing told")
	}
}

func TestDirectoriesFollowedAndForgotten(t *testing.T) {
	n := newNotifier()
	defer n.Close()
	a, b := t.TempDir(), t.TempDir()
	for _, c := range []struct {
		dirs []string
		news bool
	}{{[]string{a}, true}, {[]string{a}, false}, {[]string{a, b}, true}, {[]string{b}, false}} {
		want := map[string]bool{}
		for _, d := range c.dirs {
			want[d] = true
		}
		if news, err := n.Follow(want); news != c.news || err != nil {
			t.Errorf("%v: news %v, %v", c.dirs, news, err)
		}
		if got := n.watcher.WatchList(); len(got) != len(c.dirs) {
			t.Errorf("watched %v, want %v", got, c.dirs)
		}
	}
	// The same name, another directory: its watch must be another one too.
	os.Rename(b, b+".old")
	os.Mkdir(b, 0o755)
	if news, err := n.Follow(map[string]bool{b: true}); !news || err != nil {
		t.Errorf("replaced: news %v, %v", news, err)
	}
}
