// Package node is one place where a supervisor runs in a test: the built agent
// binary, a real Envoy, an upstream, and free ports, names and directories of
// its own. It is used by the real-Envoy tests, the demo and the benchmarks.
package node

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/upstream"
	"aether.internal/tools/envoy/fetch"
)

// Node is the place. Its directory is short because socket paths lie in it.
type Node struct {
	Dir       string
	BaseID    uint32
	Bootstrap bootstrap.Options // the next Write renders it
	Upstream  *upstream.Server
	// Adopted starts the supervisor with Envoy's own command line, which has
	// the bootstrap, the base-id and the times. With Inline the bootstrap itself
	// is in it.
	Adopted bool
	Inline  string

	ConfigPath, EnvoyPath, StateDir, Marker, Control string
}

// New makes a node around a real Envoy of the named version ("" is the
// default). Close removes it.
func New(ctx context.Context, version string) (*Node, error) {
	dir, err := os.MkdirTemp("", "an")
	if err != nil {
		return nil, err
	}
	n := &Node{
		Dir: dir, BaseID: nextBaseID(),
		ConfigPath: filepath.Join(dir, "cfg", "envoy.yaml"), EnvoyPath: filepath.Join(dir, "bin", "envoy"),
		StateDir: filepath.Join(dir, "s"), Marker: filepath.Join(dir, "run", "ready"), Control: filepath.Join(dir, "run", "control.sock"),
	}
	if err := n.furnish(ctx, version); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Node) furnish(ctx context.Context, version string) error {
	for _, dir := range []string{"cfg", "bin", "run"} {
		if err := os.Mkdir(filepath.Join(n.Dir, dir), 0o755); err != nil {
			return err
		}
	}
	if err := n.InstallEnvoy(ctx, version); err != nil {
		return err
	}
	var err error
	if n.Upstream, err = upstream.Start(); err != nil {
		return err
	}
	ports, err := bootstrap.FreePorts(5)
	if err != nil {
		return err
	}
	certificate, err := bootstrap.NewCertificate(n.Dir)
	if err != nil {
		return err
	}
	n.Bootstrap = bootstrap.Options{
		Admin: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[0])),
		HTTP:  ports[1], HTTPS: ports[2], TCP: ports[3], TLS: ports[4],
		UpstreamHTTP: n.Upstream.HTTP, UpstreamTCP: n.Upstream.TCP, Certificate: certificate,
	}
	return n.Write("v1")
}

// Close ends the upstream and removes the directory.
func (n *Node) Close() {
	if n.Upstream != nil {
		n.Upstream.Close()
	}
	os.RemoveAll(n.Dir)
}

var baseIDs atomic.Uint32

// nextBaseID is unique on this machine among processes that run at once.
func nextBaseID() uint32 {
	return 1_000_000 + uint32(os.Getpid()%100_000)*1000 + baseIDs.Add(1)%1000
}

// InstallEnvoy puts an Envoy of the named version at EnvoyPath, by rename.
func (n *Node) InstallEnvoy(ctx context.Context, version string) error {
	from, err := fetch.Path(ctx, version)
	if err != nil {
		return err
	}
	return Install(from, n.EnvoyPath)
}

// Install puts a link to a binary over another path, by rename. A hard link would
// change the file's ctime, and whoever else has it would hash it again.
func Install(from, to string) error {
	from, err := filepath.EvalSymlinks(from) // what is there now may be replaced
	if err != nil {
		return err
	}
	if from, err = filepath.Abs(from); err != nil {
		return err
	}
	tmp := to + ".new"
	os.Remove(tmp)
	if err := os.Symlink(from, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, to)
}

// Write renders the bootstrap, with tag as the x-epoch header of every answer,
// and renames it into place.
func (n *Node) Write(tag string) error {
	n.Bootstrap.EpochTag = tag
	data, err := n.Bootstrap.YAML()
	if err != nil {
		return err
	}
	return n.WriteRaw(data)
}

// WriteRaw renames any content into the bootstrap's place.
func (n *Node) WriteRaw(data []byte) error {
	tmp := n.ConfigPath + ".tmp"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, n.ConfigPath)
}

// Target is where the load goes.
func (n *Node) Target() load.Target { return n.Bootstrap.Target() }

// Args are the supervisor's arguments; later ones win over earlier ones. What
// stands behind "--" goes to Envoy.
func (n *Node) Args(extra ...string) []string {
	var envoy []string
	if i := slices.Index(extra, "--"); i >= 0 {
		extra, envoy = extra[:i], extra[i+1:]
	}
	base := strconv.Itoa(int(n.BaseID))
	args := []string{
		"proxy-supervisor", "--state-dir", n.StateDir, "--ready-marker", n.Marker, "--control-socket", n.Control, "--log-format", "json",
	}
	line := []string{"-l", "warn"}
	if n.Adopted {
		config := []string{"-c", n.ConfigPath}
		if n.Inline != "" {
			config = []string{"--config-yaml", n.Inline}
		}
		line = slices.Concat([]string{n.EnvoyPath}, config, []string{"--base-id", base, "--drain-time-s", "2", "--parent-shutdown-time-s", "10", "-l", "warn"})
	} else {
		args = append(args, "--envoy-path", n.EnvoyPath, "--config", n.ConfigPath, "--base-id", base, "--drain-time", "2s", "--parent-shutdown-time", "10s")
	}
	return slices.Concat(args, extra, []string{"--"}, line, envoy)
}

// Segment is Envoy's shared memory of this node's base-id.
func (n *Node) Segment() string {
	return fmt.Sprintf("/dev/shm/envoy_shared_memory_%d0", n.BaseID)
}
