package coordination

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// GiveDir makes the directory path uid's and nobody else's: owner uid, mode
// 0700. It is for an init container that is root and has no capability but
// CHOWN: the kubelet makes host directories root's, and whoever can open what
// is below can take Envoy's listening sockets (fact 1).
//
// A directory that is right already isn't touched: beside a surging pod an old
// one lives in it. One of a third user is refused, since that user's Envoy may
// be alive.
func GiveDir(path string, uid int) error {
	fi, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("give a directory to uid %d: %w", uid, err)
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() {
		return fmt.Errorf("give a directory to uid %d: %s is %s", uid, path, kind(fi.Mode().Type()))
	}
	owner, us := int(st.Uid), os.Geteuid()
	switch {
	case owner == uid && fi.Mode().Perm() == 0o700:
		return nil
	case owner != uid && owner != us:
		return fmt.Errorf("%s belongs to uid %d, whose Envoy may live, and not to uid %d; "+
			"after a change of the user id remove this directory on the node, or name another one", path, owner, uid)
	}
	return give(path, owner, us, uid)
}

// give takes a detour by our own uid: without FOWNER only the owner may chmod.
func give(path string, owner, us, uid int) error {
	if owner != us {
		if err := os.Lchown(path, us, -1); err != nil {
			return err // names the call and the path
		}
	}
	if err := os.Chmod(path, fs.ModeDir|0o700); err != nil {
		return err
	}
	return os.Lchown(path, uid, -1)
}
