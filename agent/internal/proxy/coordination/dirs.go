package coordination

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// EnsureStateDir makes path a directory that only we can change: it's created
// 0700, or refused when it is somebody else's, open to others' writes, or not a
// directory. Whoever can write there can take Envoy's listening sockets
// (fact 1). Errors name the path and its owner.
func EnsureStateDir(path string) error {
	path = filepath.Clean(path)
	if base := RuntimeDir(); strings.HasPrefix(path, base+"/") {
		// In a world-writable /tmp the owner of the parent owns it all.
		if err := ensureDir(base); err != nil {
			return err
		}
	}
	return ensureDir(path)
}

func ensureDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("state directory: %w", err)
	}
	fi, err := os.Lstat(path)
	if err == nil {
		err = checkOwn(fi, fs.ModeDir)
	}
	if err == nil && fi.Mode()&0o022 != 0 {
		err = fmt.Errorf("its mode %04o lets others write (owner: us, uid %d); chmod it to 0700", fi.Mode().Perm(), os.Geteuid())
	}
	if err != nil {
		return fmt.Errorf("state directory %s: %w", path, err)
	}
	return nil
}

// RuntimeDir is where an ordinary user's supervisor keeps its files:
// $XDG_RUNTIME_DIR/aether when that directory is ours (su and sudo leave
// another user's), else aether-UID in the directory for temporary files. It
// only names it; EnsureStateDir, of it or of what's below, creates and checks.
func RuntimeDir() string {
	if xdg := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(xdg) {
		if fi, err := os.Stat(xdg); err == nil && checkOwn(fi, fs.ModeDir) == nil {
			return filepath.Join(xdg, "aether")
		}
	}
	return filepath.Join(os.TempDir(), "aether-"+strconv.Itoa(os.Geteuid()))
}
