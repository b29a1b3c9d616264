// Package cluster rolls the charts' pods on a real Kubernetes node under load:
// real kubelet, controllers, scheduler, etcd and containerd, made by tools/kube,
// and images and charts of this repository. docs/kubernetes-tests.md has what it
// found.
package cluster

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/helm"
	"aether.internal/tools/runfile"
)

// Images that the tests put into containerd, by the variables that name them.
var images = []string{"AGENT_IMAGE", "AGENT_NEXT_IMAGE", "ENVOY_IMAGE_1_36_4", "ENVOY_IMAGE_1_40_0"}

var (
	repository = runfile.Root("../..")
	keep       = flag.Bool("keep", false, "leave the cluster running, and take one that runs")
)

// the is the cluster of this test run, nil where images aren't built.
var the *cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if runfile.Path("AGENT_IMAGE") == "" {
		os.Exit(m.Run()) // each test says why it skips
	}
	// Waiting is most of what these tests do, so more of them than there are CPUs.
	_ = flag.Set("test.parallel", "4")
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/cluster:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	the = &cluster{state: "/var/lib/aether-kube"}
	if !*keep {
		defer func() { err = errors.Join(err, the.purge()) }()
	}
	if err := the.begin(ctx); err != nil {
		return 1, err
	}
	fmt.Printf("the cluster is ready after %v\n", time.Since(began).Round(time.Second))
	return m.Run(), writeMeasured()
}

// cluster is one Kubernetes node.
type cluster struct {
	state    string // directory of its state
	programs string // directory of Kubernetes' programs
	helm     helm.Helm
	api      *api
}

// begin makes what is missing, starts the node and gives it the images.
func (c *cluster) begin(ctx context.Context) (err error) {
	if err := c.script("setup"); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, c.path("setup"), "-print").Output()
	if err != nil {
		return err
	}
	c.programs = strings.TrimSpace(string(out))
	if !*keep {
		if err := c.script("cluster", "purge"); err != nil { // of a run that was killed
			return err
		}
	}
	if err := c.script("cluster", "start"); err != nil {
		return err
	}
	var files []string
	for _, variable := range images {
		files = append(files, runfile.Path(variable))
	}
	if err := c.script("cluster", append([]string{"import"}, files...)...); err != nil {
		return err
	}
	if c.api, err = newAPI(c.state); err != nil {
		return err
	}
	c.helm, err = helm.Get(ctx, repository, 4)
	return err
}

func (c *cluster) path(script string) string {
	return filepath.Join(repository, "tools/kube", script)
}

// script runs one of tools/kube; what it says is in its error.
func (c *cluster) script(name string, args ...string) error {
	cmd := exec.Command(c.path(name), args...)
	cmd.Env = append(os.Environ(), "AETHER_KUBE_STATE="+c.state)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("tools/kube/%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// kubectl runs a command as an administrator would.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(c.programs, "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(c.state, "admin.kubeconfig"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return string(out), err
}
