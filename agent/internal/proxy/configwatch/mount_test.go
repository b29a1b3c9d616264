package configwatch

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

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
