package configwatch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxLinks is the kernel's own limit of symbolic links on one path.
const maxLinks = 40

// place is one directory entry.
type place struct{ dir, name string }

// route lists the entries whose change can change which file path names: every
// symbolic link on the way, and the file. In a ConfigMap volume these are
// DIR/envoy.yaml, DIR/..data and DIR/..2026_x/envoy.yaml. The walk ends at an
// entry that is missing, so that its return is seen.
func route(path string) []place {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil // no working directory: the poll will tell
	}
	var places []place
	dir, rest := "/", strings.Split(path, "/")
	for len(rest) > 0 && len(places) <= maxLinks {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			dir = filepath.Dir(dir) // dir has no links left
			continue
		}
		target, isLink, err := entry(filepath.Join(dir, name))
		switch {
		case err != nil:
			return append(places, place{dir, name})
		case isLink:
			places = append(places, place{dir, name})
			rest = slices.Concat(strings.Split(target, "/"), rest)
			if filepath.IsAbs(target) {
				dir = "/"
			}
		case len(rest) == 0:
			places = append(places, place{dir, name})
		default:
			dir = filepath.Join(dir, name)
		}
	}
	return places
}

// entry tells whether path itself is a symbolic link, and to what.
func entry(path string) (target string, isLink bool, err error) {
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode()&os.ModeSymlink == 0 {
		return "", false, err
	}
	target, err = os.Readlink(path)
	return target, true, err
}
