// Package helm builds Helm and kustomize from their Go modules, pinned in
// tools/helm, and runs them. Tests of the charts and of a cluster share it.
package helm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Majors are the versions of Helm that the charts are for.
var Majors = []int{3, 4}

// lockPoll is how often a waiter looks whether another process has built it: a
// blocking flock could not be cancelled.
const lockPoll = 100 * time.Millisecond

// Helm is one built program.
type Helm struct {
	Major int
	Path  string
}

// Get is the Helm of that major version. It is built where it isn't yet (minutes
// on an empty Go cache) and kept in the user's cache directory, named after the
// pins. root is the repository's directory.
func Get(ctx context.Context, root string, major int) (Helm, error) {
	path, err := tool(ctx, root, fmt.Sprintf("helm%d", major), fmt.Sprintf("helm.sh/helm/v%d/cmd/helm", major))
	return Helm{Major: major, Path: path}, err
}

// Kustomize renders a directory with a kustomization.
func Kustomize(ctx context.Context, root, dir string) (string, error) {
	path, err := tool(ctx, root, "kustomize", "sigs.k8s.io/kustomize/kustomize/v5")
	if err != nil {
		return "", err
	}
	return run(exec.CommandContext(ctx, path, "build", dir))
}

// tool is the path of a program that tools/helm pins.
func tool(ctx context.Context, root, name, pkg string) (string, error) {
	path, err := place(root, name)
	if err == nil {
		err = build(ctx, root, pkg, path)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return path, nil
}

func place(root, name string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, pins := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(root, "tools", "helm", pins))
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	return filepath.Join(cache, "aether", "helm", hex.EncodeToString(sum.Sum(nil))[:12], name), nil
}

// build makes path unless it is there; of several processes one does it.
func build(ctx context.Context, root, pkg, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	lock, err := acquire(ctx, path+".lock")
	if err != nil {
		return err
	}
	defer lock.Close() // lets go of the lock too
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	fresh := path + ".new" // renamed when whole
	cmd := exec.CommandContext(ctx, "go", "build", "-ldflags=-s -w", "-o", fresh, pkg)
	cmd.Dir = filepath.Join(root, "tools", "helm")
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return os.Rename(fresh, path)
}

func acquire(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			break
		}
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
			err = fmt.Errorf("another process is building it: %w", ctx.Err())
		}
		break
	}
	f.Close()
	return nil, err
}

// Run runs helm with args and returns its standard output. The user's own
// repositories, plugins and cluster are out of its sight; env ("NAME=value") may
// name a cluster. An error has what it wrote to standard error.
func (h Helm) Run(ctx context.Context, env []string, args ...string) (string, error) {
	home, err := os.MkdirTemp("", "helm")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	cmd := exec.CommandContext(ctx, h.Path, args...)
	cmd.Env = append([]string{"HOME=" + home, "KUBECONFIG=" + os.DevNull, "PATH=" + os.Getenv("PATH")}, env...)
	return run(cmd)
}

func run(cmd *exec.Cmd) (string, error) {
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(cmd.Path), cmd.Args[1], err, strings.TrimSpace(complaint.String()))
	}
	return out.String(), nil
}
