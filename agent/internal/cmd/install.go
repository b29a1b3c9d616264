package cmd

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
)

const (
	flagInstall          = "install-path"
	flagInstallReadiness = "install-readiness-path"
	readinessProgram     = "proxy-ready" // beside this program in the agent's image
)

// installation is what an init container asks for: this program, and the probe
// that is beside it, on a volume that a container with Envoy shares.
type installation struct{ program, readiness string }

func (i *installation) bind(f *pflag.FlagSet) {
	f.StringVar(&i.program, flagInstall, "", "copy this program to `path`, and exit")
	f.StringVar(&i.readiness, flagInstallReadiness, "", "copy "+readinessProgram+", which is beside this program, to `path`, and exit")
}

func (i installation) wanted() bool { return i.program != "" || i.readiness != "" }

// do copies what is wanted. Nothing is copied unless every source is there: half
// an installation would start and fail at its first probe.
func (i installation) do(program string) error {
	var copies []copying
	for _, c := range []copying{
		{flagInstall, program, i.program},
		{flagInstallReadiness, filepath.Join(filepath.Dir(program), readinessProgram), i.readiness},
	} {
		if c.to == "" {
			continue
		}
		if fi, err := os.Stat(c.from); err != nil {
			return fmt.Errorf("--%s: %w; is this the agent's image?", c.flag, err)
		} else if !fi.Mode().IsRegular() {
			return fmt.Errorf("--%s: %s is not a regular file", c.flag, c.from)
		}
		copies = append(copies, c)
	}
	for _, c := range copies {
		if err := c.do(); err != nil {
			return fmt.Errorf("--%s: copy %s to %s: %w", c.flag, c.from, c.to, err)
		}
	}
	return nil
}

// copying is of one executable. The directory of its target has to be there: one
// made here, of a path that names no volume, would go with the container.
type copying struct{ flag, from, to string }

// do copies by rename: who starts the target meanwhile gets the old or the new
// one, whole, and one that runs is not "text file busy".
func (c copying) do() error {
	if fi, err := os.Lstat(c.to); err == nil && fi.IsDir() {
		return &fs.PathError{Op: "rename", Path: c.to, Err: fmt.Errorf("is a directory; name the file in it")}
	}
	src, err := os.Open(c.from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.CreateTemp(filepath.Dir(c.to), "."+filepath.Base(c.to)+".*")
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
	return os.Rename(dst.Name(), c.to)
}
