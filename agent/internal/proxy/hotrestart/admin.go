package hotrestart

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"aether.internal/agent/internal/proxy/envoy"
)

// AdminLink is where, with AdminPerEpoch, the serving epoch's admin socket is
// found, whichever epoch that is.
func AdminLink(stateDir string) string { return filepath.Join(stateDir, "admin.sock") }

func (sh *shell) adminSocket(epoch int) string {
	return filepath.Join(sh.dirs.Dir(epoch), "admin.sock")
}

// adminOf is where an epoch's admin answers.
func (sh *shell) adminOf(in *input, epoch int) envoy.Address {
	if sh.cfg.AdminPerEpoch {
		return envoy.Address{Path: sh.adminSocket(epoch)}
	}
	return *in.boot.Admin
}

// overlay is what is merged over an epoch's bootstrap, "" for nothing. The
// socket lies in a private directory and is private itself.
func (sh *shell) overlay(epoch int) string {
	if !sh.cfg.AdminPerEpoch {
		return ""
	}
	return fmt.Sprintf("admin: {address: {pipe: {path: %s, mode: %d}}}", strconv.Quote(sh.adminSocket(epoch)), 0o600)
}

// linkAdmin makes the stable name lead to the epoch that serves now, or nowhere:
// another pod may have had it.
func (sh *shell) linkAdmin(epoch int) error {
	link := AdminLink(sh.cfg.StateDir)
	if !sh.cfg.AdminPerEpoch {
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	next := link + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(sh.adminSocket(epoch), next); err != nil {
		return err
	}
	return os.Rename(next, link)
}
