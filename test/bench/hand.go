package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"aether.internal/test/node"
)

// hand starts each epoch as a person would: by its command line.
type hand struct {
	node   *node.Node
	poll   time.Duration
	epoch  int
	serves *exec.Cmd // nil before the first

	keepsParent bool // for as long as anything is measured
}

// parentShutdown is Envoy's own, so that parents are gone by the next turn:
// they share names with the epoch after the next two.
const parentShutdown = "1"

func (h *hand) args(epoch int) []string {
	shutdown := parentShutdown
	if h.keepsParent {
		shutdown = "3600"
	}
	return []string{
		"--config-path", h.node.ConfigPath, "--base-id", strconv.Itoa(int(h.node.BaseID)),
		"--restart-epoch", strconv.Itoa(epoch), "--socket-path", filepath.Join(h.node.StateDir, "hr"), "--socket-mode", "600",
		"--drain-time-s", "1", "--parent-shutdown-time-s", shutdown,
		"--concurrency", concurrency, "-l", "warn",
	}
}

// start is one restart by hand. The clock starts before the exec, or, with
// validate, before that of the validator.
func (h *hand) start(ctx context.Context, validate bool) (sample, error) {
	parent := h.serves
	cmd := exec.Command(h.node.EnvoyPath, h.args(h.epoch)...)
	began := time.Now()
	if validate {
		check := exec.Command(h.node.EnvoyPath, "--mode", "validate", "--config-path", h.node.ConfigPath, "-l", "error")
		if out, err := check.CombinedOutput(); err != nil {
			return sample{}, fmt.Errorf("validate by hand: %w: %s", err, out)
		}
	}
	if err := cmd.Start(); err != nil {
		return sample{}, fmt.Errorf("start by hand: %w", err)
	}
	out := sample{Started: time.Since(began)}
	h.serves = cmd
	if err := awaitLive(ctx, h.node.Bootstrap.Admin, h.epoch, h.poll); err != nil {
		return sample{}, fmt.Errorf("by hand: %w", err)
	}
	out.Live = time.Since(began)
	h.epoch++
	if parent != nil && !h.keepsParent {
		if err := parent.Wait(); err != nil {
			return sample{}, fmt.Errorf("epoch %d by hand: %w", h.epoch-2, err)
		}
	}
	var err error
	out.Envoy, err = settledCPU(ctx, cmd.Process.Pid)
	return out, err
}

func (h *hand) pid() int { return h.serves.Process.Pid }

func (h *hand) close() {
	if h.serves != nil {
		_ = h.serves.Process.Kill()
		_ = h.serves.Wait()
	}
}
