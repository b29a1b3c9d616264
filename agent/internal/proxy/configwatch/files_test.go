package configwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

const never = time.Hour

// deadline is for what happens within milliseconds on an idle machine.
const deadline = 20 * time.Second

// swapsOnly tells nothing but what is told at once.
var swapsOnly = Options{Poll: never, Settle: never, Max: never}

// settling tells writes too, but by events alone.
var settling = Options{Poll: never}

// live is the whole watch on real files with the kernel's events.
type live struct {
	t     *testing.T
	dir   string
	told  chan Change
	stood chan struct{} // a value each time all watches stand
	*notifier
}

func (l *live) Follow(dirs map[string]bool) (bool, error) {
	news, err := l.notifier.Follow(dirs)
	if err == nil && !news {
		select {
		case l.stood <- struct{}{}:
		default:
		}
	}
	return news, err
}

func (b *bench) replaceByFIFO(name string) {
	os.Remove(b.path(name))
	if err := syscall.Mkfifo(b.path(name), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// onDisk runs the watch on dir/config and dir/binary, as layout made them.
func onDisk(t *testing.T, o Options, layout func(dir string)) *live {
	t.Helper()
	l := &live{t: t, dir: t.TempDir(), told: make(chan Change, 100), stood: make(chan struct{}, 1), notifier: newNotifier()}
	l.write("binary", "b1")
	if layout == nil {
		l.write("config", "v1")
	} else {
		layout(l.dir)
	}
	o.ConfigPath, o.BinaryPath = l.path("config"), l.path("binary")
	o, err := o.complete()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := newWatcher(o, l, func(c Change) { l.told <- c })
	done := make(chan struct{})
	go func() { defer close(done); w.run(ctx) }() // joined by the cleanup
	t.Cleanup(func() { cancel(); <-done; l.Close() })
	// Twice: the first look, too, has been prepared then.
	<-l.stood
	<-l.stood
	return l
}

func (l *live) path(name string) string { return filepath.Join(l.dir, name) }

func (l *live) write(name, content string) { write(l.t, l.path(name), content) }

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (l *live) rename(from, to string) {
	l.t.Helper()
	if err := os.Rename(l.path(from), l.path(to)); err != nil {
		l.t.Fatal(err)
	}
}

// wantTold waits for the next report.
func (l *live) wantTold(want Change) {
	l.t.Helper()
	start := time.Now()
	select {
	case got := <-l.told:
		if got != want {
			l.t.Fatalf("told %+v, want %+v", got, want)
		}
		l.t.Logf("told after %v", time.Since(start))
	case <-time.After(deadline):
		l.t.Fatalf("nothing told in %v, want %+v", deadline, want)
	}
}

// wantQuiet is for acts whose look is immediate: a swap that follows them is
// the next thing told.
func (l *live) wantQuiet() {
	l.t.Helper()
	l.write("b.tmp", fmt.Sprint("a binary of ", time.Now()))
	l.rename("b.tmp", "binary")
	l.wantTold(Change{Binary: true})
}

func TestRenameIsToldAtOnce(t *testing.T) {
	l := onDisk(t, swapsOnly, nil)
	for n := range 5 {
		l.write("tmp", fmt.Sprint("v2.", n)) // same tick of the kernel's clock as the rename
		l.rename("tmp", "config")
		l.wantTold(Change{Config: true})
	}
	l.write("tmp", "v2.4")
	l.rename("tmp", "config")
	l.wantQuiet()
}

func TestRenameFromAnotherDirectoryIsToldAtOnce(t *testing.T) {
	l := onDisk(t, swapsOnly, nil)
	elsewhere := filepath.Join(t.TempDir(), "tmp")
	write(t, elsewhere, "v2")
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(elsewhere, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(elsewhere, l.path("config")); err != nil {
		t.Fatal(err)
	}
	l.wantTold(Change{Config: true})
}

// configMap makes dir what the kubelet makes of a ConfigMap; swap is its update.
func configMap(t *testing.T, dir, version, content string) {
	t.Helper()
	swap(t, dir, version, content)
	if err := os.Symlink("..data/config", filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
}

func swap(t *testing.T, dir, version, content string) {
	t.Helper()
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	err := os.Mkdir(filepath.Join(dir, version), 0o755)
	write(t, filepath.Join(dir, version, "config"), content)
	err = errors.Join(err,
		os.Symlink(version, filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if old != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, old)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigMapSwapIsToldAtOnce(t *testing.T) {
	l := onDisk(t, swapsOnly, func(dir string) { configMap(t, dir, "..2026_1", "v1") })
	swap(t, l.dir, "..2026_2", "v2")
	l.wantTold(Change{Config: true})
	swap(t, l.dir, "..2026_3", "v2") // the same content: another key of the map changed
	l.wantQuiet()
	swap(t, l.dir, "..2026_4", "v3")
	l.wantTold(Change{Config: true})
}

func TestLinkToAnotherDirectory(t *testing.T) {
	releases := t.TempDir()
	write(t, filepath.Join(releases, "v1"), "v1")
	l := onDisk(t, settling, func(dir string) { os.Symlink(filepath.Join(releases, "v1"), filepath.Join(dir, "config")) })
	write(t, filepath.Join(releases, "v1"), "v2") // behind the link
	l.wantTold(Change{Config: true})
	write(t, filepath.Join(releases, "tmp"), "v3")
	os.Rename(filepath.Join(releases, "tmp"), filepath.Join(releases, "v1"))
	l.wantTold(Change{Config: true})
}

func TestWriteInPlaceIsTold(t *testing.T) {
	l := onDisk(t, settling, nil)
	l.write("config", "v2")
	l.wantTold(Change{Config: true})
	os.Remove(l.path("binary"))
	l.write("binary", "b2") // as cp does
	l.wantTold(Change{Binary: true})
	l.wantQuiet()
}

func TestWritesEvery50msAreToldWhileTheyGoOn(t *testing.T) {
	l := onDisk(t, settling, nil)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	wrote := 0
	for limit := time.Now().Add(deadline); len(l.told) == 0; wrote++ {
		l.write("config", fmt.Sprint("v", wrote))
		if <-tick.C; time.Now().After(limit) {
			t.Fatal("nothing told while writes go on")
		}
	}
	t.Logf("told after %d writes", wrote)
	<-l.told
	l.write("config", "the last one")
	l.wantTold(Change{Config: true})
}

func TestWhatIsNoChangeOnDisk(t *testing.T) {
	l := onDisk(t, Options{Poll: never, Settle: time.Millisecond}, nil)
	act := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		l.wantQuiet()
	}
	act(os.Chmod(l.path("config"), 0o600))
	act(os.Chtimes(l.path("config"), t0, t0))
	act(os.WriteFile(l.path("other"), []byte("x"), 0o600))
	act(os.Remove(l.path("other")))
	act(errors.Join(os.Link(l.path("config"), l.path("link")), os.Rename(l.path("link"), l.path("config"))))
}

func TestDirectoryDeletedAndRecreated(t *testing.T) {
	inner := filepath.Join(t.TempDir(), "a", "b")
	l := onDisk(t, settling, func(dir string) {
		os.MkdirAll(inner, 0o755)
		write(t, filepath.Join(inner, "config"), "v1")
		os.Symlink(filepath.Join(inner, "config"), filepath.Join(dir, "config"))
	})
	for n, away := range []func() error{
		func() error { return os.RemoveAll(inner) },
		func() error { return os.RemoveAll(filepath.Dir(inner)) },
		func() error { return os.Rename(inner, inner+".old") },
	} {
		if err := errors.Join(away(), os.MkdirAll(inner, 0o755)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(inner, "config"), fmt.Sprint("recreated ", n))
		l.wantTold(Change{Config: true})
		write(t, filepath.Join(inner, "config"), fmt.Sprint("written ", n)) // the new one is watched
		l.wantTold(Change{Config: true})
	}
}

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

// B51. Only root can try it, on a thread that ends with its own mounts.
func TestMountedFileIsToldAtTheStart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config")
	write(t, path, "v1")
	if isMountPoint(path) || isMountPoint(filepath.Join(dir, "absent")) {
		t.Error("an ordinary file is a mount point")
	}
	write(t, filepath.Join(dir, "source"), "v1")
	type result struct {
		mounted bool
		log     string
		err     error
	}
	got := make(chan result)
	go func() { // received from below; its thread dies with it
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
		if err == nil {
			err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}
		if err == nil {
			err = unix.Mount(filepath.Join(dir, "source"), path, "", unix.MS_BIND, "")
		}
		var log strings.Builder
		o, _ := Options{ConfigPath: path, Log: slog.New(slog.NewTextHandler(&log, nil))}.complete()
		w := newWatcher(o, &bench{}, nil)
		w.start(t.Context())
		got <- result{isMountPoint(path), log.String(), err}
	}()
	r := <-got
	if r.err != nil {
		t.Skip("no mounts of our own: ", r.err)
	}
	if !r.mounted || !strings.Contains(r.log, "subPath") || !strings.Contains(r.log, path) {
		t.Errorf("a bind-mounted file: %+v", r)
	}
}

func TestConfigIsReadUpToALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "0123456789")
	for limit, content := range map[int64]string{4: "0123", 10: "0123456789", 99: "0123456789"} {
		if got, err := hashUpTo(t.Context(), path, limit); err != nil || got != hashOf(content) {
			t.Errorf("limit %d: %v, %v", limit, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hashUpTo(ctx, path, 99); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := hashUpTo(t.Context(), filepath.Dir(path), 99); err == nil {
		t.Error("a directory was read")
	}
}
