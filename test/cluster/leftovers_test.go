package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// bridge is of pods with a network of their own (tools/kube/lib/config).
const bridge = "cni-aether"

// purge ends the cluster, and is an error when anything is left of it.
func (c *cluster) purge() error {
	if err := c.script("cluster", "purge"); err != nil {
		return err
	}
	shared, _ := filepath.Glob("/run/aether/" + namespaces + "*") // of a run that was killed
	for _, dir := range shared {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	left := c.leftovers()
	if left == nil {
		return nil
	}
	return fmt.Errorf("left behind: %w", errors.Join(left...))
}

func (c *cluster) leftovers() (left []error) {
	found := func(what string) { left = append(left, errors.New(what)) }
	for _, pattern := range []string{
		c.state, "/sys/fs/cgroup/*/kubepods", "/sys/fs/cgroup/kubepods", "/run/netns/cni-*",
		"/run/aether/" + namespaces + "*", "/var/log/containers/*",
	} {
		there, _ := filepath.Glob(c.machine + "/root" + pattern)
		for _, path := range there {
			found(path)
		}
	}
	mounts, _ := os.ReadFile(c.machine + "/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.state) {
			found("mount " + line)
		}
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if line, _ := os.ReadFile(path); bytes.Contains(line, []byte(c.state+"/")) {
			found(string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	if _, err := net.InterfaceByName(bridge); err == nil {
		found("interface " + bridge)
	}
	return left
}
