package configwatch

import "golang.org/x/sys/unix"

// isMountPoint tells whether the file that path names is the root of a mount, as
// with a subPath or a bind mount of a single file. Such a mount keeps the inode
// it was made with: a file that replaces it on the host never shows up.
// A kernel that can't tell (before 5.8) says no.
func isMountPoint(path string) bool {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_TYPE, &st); err != nil {
		return false
	}
	return st.Attributes_mask&st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
