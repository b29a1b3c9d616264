// Package install copies a program from one image to a volume that a container
// of another image mounts. Init containers use it: the images have no shell.
package install

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Check says whether from is a program that can be copied.
func Check(from string) error {
	if fi, err := os.Stat(from); err != nil {
		return err
	} else if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", from)
	}
	return nil
}

// Copy copies one executable by rename: who starts the target meanwhile gets the
// old or the new one, whole, and one that runs is not "text file busy". The
// target's directory has to be there: one made here, of a path that names no
// volume, would go with the container.
func Copy(from, to string) error {
	if err := copyFile(from, to); err != nil {
		return fmt.Errorf("copy %s to %s: %w", from, to, err)
	}
	return nil
}

func copyFile(from, to string) error {
	if fi, err := os.Lstat(to); err == nil && fi.IsDir() {
		return &fs.PathError{Op: "rename", Path: to, Err: fmt.Errorf("is a directory; name the file in it")}
	}
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.CreateTemp(filepath.Dir(to), "."+filepath.Base(to)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(dst.Name()) // in vain after the rename
	defer dst.Close()           // a second Close does nothing
	if _, err := io.Copy(dst, src); err != nil {
		return err
	}
	// For every user: the other container's may not be ours.
	if err := dst.Chmod(0o755); err != nil {
		return err
	}
	// A full disk may say so only now; and the rename must not outlive the content.
	if err := dst.Sync(); err != nil {
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	return os.Rename(dst.Name(), to)
}
