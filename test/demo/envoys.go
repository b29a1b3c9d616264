package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// older is the Envoy that the demo upgrades from.
const older = "1.39.3"

// envoy is one executable.
type envoy struct {
	path       string
	version    string // "1.40.0"
	hotRestart string // "11.104": only equal ones hand over to each other
}

// envoys are the binary that is replaced and the one that replaces it.
type envoys struct {
	old, new envoy
	// lacking says in one sentence why they are the same one; empty when they
	// aren't.
	lacking string
}

// chooser finds Envoys; its parts are functions for the tests' sake.
type chooser struct {
	path     func(ctx context.Context, version string) (string, error) // fetch.Path
	identify func(ctx context.Context, path string) (envoy, error)
}

// choose has an error when there is no Envoy at all. The newer one is the
// default, or the one that $ENVOY names.
func (c chooser) choose(ctx context.Context) (envoys, error) {
	newer, err := c.get(ctx, "")
	if err != nil {
		return envoys{}, err
	}
	old, err := c.get(ctx, older)
	switch {
	case ctx.Err() != nil:
		return envoys{}, context.Cause(ctx)
	case err != nil:
		return same(newer, err.Error()), nil
	case old.version == newer.version:
		return same(newer, "the Envoy that ENVOY names is of the same version as the one to upgrade from"), nil
	case old.hotRestart != newer.hotRestart:
		return same(newer, fmt.Sprintf("Envoy %s speaks hot-restart version %s and %s speaks %s, so they can't hand over", old.version, old.hotRestart, newer.version, newer.hotRestart)), nil
	}
	return envoys{old: old, new: newer}, nil
}

func (c chooser) get(ctx context.Context, version string) (envoy, error) {
	path, err := c.path(ctx, version)
	if err != nil {
		return envoy{}, err
	}
	return c.identify(ctx, path)
}

func same(e envoy, why string) envoys {
	return envoys{old: e, new: e, lacking: fmt.Sprintf("The upgrade between two versions is skipped, and a copy of Envoy %s that is one byte longer takes its place: %s.", e.version, why)}
}

// upgrade is "1.39.3 → 1.40.0".
func (e envoys) upgrade() string {
	if e.lacking != "" {
		return e.old.version + ", another file"
	}
	return e.old.version + " → " + e.new.version
}

func (e envoys) say() string {
	if e.lacking != "" {
		return "Swap the Envoy binary for another file of the same version."
	}
	return fmt.Sprintf("Swap the Envoy binary: %s.", e.upgrade())
}

// installOld and installNew put a binary in place, by rename.
func (e envoys) installOld(path string) error { return place(e.old.path, path, "") }

func (e envoys) installNew(path string) error {
	if e.lacking == "" {
		return place(e.new.path, path, "")
	}
	// The same content would be no change. No loader minds what stands behind
	// the end of an ELF file.
	return place(e.new.path, path, "\n")
}

// place copies a binary, with something behind its end. A link would not do:
// whoever links the same file elsewhere changes its ctime under us.
func place(from, to, behind string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	tmp := to + ".new"
	out, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.MultiReader(in, strings.NewReader(behind)))
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(tmp, to)
}

// identify asks an Envoy for its versions.
func identify(ctx context.Context, path string) (envoy, error) {
	version, err := ask(ctx, path, "--version")
	if err != nil {
		return envoy{}, err
	}
	hot, err := ask(ctx, path, "--hot-restart-version")
	if err != nil {
		return envoy{}, err
	}
	// "…/envoy  version: <commit>/1.40.0/Clean/RELEASE/BoringSSL"
	if parts := strings.Split(version, "/"); len(parts) >= 4 {
		version = parts[len(parts)-4]
	}
	return envoy{path: path, version: version, hotRestart: hot}, nil
}

func ask(ctx context.Context, path, flag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, flag).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", path, flag, err)
	}
	return strings.TrimSpace(string(out)), nil
}
