package cmd

import (
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// places decides where an ordinary user's files are who can't write where they
// are by default.
type places struct {
	euid       int
	runtimeDir func() string // the user's own, "" when there is none
	usable     func(dir string) bool
	ensure     func(dir string) error // makes a directory, and refuses somebody else's
	write      func(path string, data []byte) error
}

// usable tells whether dir is there and ours to write to.
func usable(dir string) bool {
	return unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS) == nil
}

// fallBack replaces the defaults of cfg that can't be used. Explicit values are
// left alone, right or wrong.
func (p places) fallBack(cfg *hotrestart.Config, f *pflag.FlagSet) {
	for _, at := range []struct {
		flag string
		path *string
		dir  string // what has to be usable
		name string // in the user's directory
	}{
		{flagStateDir, &cfg.StateDir, cfg.StateDir, "state"},
		{flagReadyMarker, &cfg.ReadyMarkerPath, filepath.Dir(cfg.ReadyMarkerPath), "ready"},
		{flagControlSocket, &cfg.ControlSocket, filepath.Dir(cfg.ControlSocket), "control.sock"},
	} {
		if !f.Changed(at.flag) {
			*at.path = p.place(*at.path, at.dir, cfg.BaseID, at.name)
		}
	}
}

// own makes the user's directory if cfg has anything in it. It may be in a
// directory that everybody can write to, where another user could have made it.
func (p places) own(cfg hotrestart.Config) error {
	own := p.runtimeDir()
	for _, at := range []struct{ path, instead string }{
		{cfg.StateDir, defaultStateDir},
		{cfg.ReadyMarkerPath, filepath.Dir(defaultReadyMarker)},
		{cfg.ControlSocket, filepath.Dir(defaultControlSocket)},
	} {
		if own == "" || !strings.HasPrefix(at.path, own+"/") {
			continue
		}
		if err := p.ensure(own); err != nil {
			return hotrestart.Exitf(hotrestart.ExitTaken, "%w; it would be in place of %s, which uid %d can't write to", err, at.instead, p.euid)
		}
		return nil
	}
	return nil
}

// place is path, or name in the user's own directory. There each base-id has a
// directory of its own, so that two supervisors of one user don't collide.
func (p places) place(path, dir string, base uint32, name string) string {
	if p.euid == 0 || p.usable(dir) {
		return path
	}
	own := p.runtimeDir()
	if own == "" {
		return path
	}
	return filepath.Join(own, strconv.FormatUint(uint64(base), 10), name)
}

// absolute makes the paths independent of the working directory, which
// "proxyctl status" doesn't share.
func absolute(cfg *hotrestart.Config) error {
	for _, path := range []*string{&cfg.EnvoyPath, &cfg.ConfigPath, &cfg.StateDir, &cfg.ReadyMarkerPath, &cfg.ControlSocket} {
		if *path == "" {
			continue // Check says which
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = abs
	}
	return nil
}
