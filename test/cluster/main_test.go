// Package cluster rolls the charts' pods on a real Kubernetes node under load:
// real kubelet, controllers, scheduler, etcd and containerd, made by tools/kube,
// and images and charts of this repository. docs/kubernetes-tests.md has what it
// found.
package cluster

import (
	"context"
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
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if runfile.Path("AGENT_IMAGE") == "" {
		return m.Run() // each test says why it skips
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	began := time.Now()
	c, err := newCluster(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test/cluster:", err)
		return 1
	}
	if !*keep {
		defer func() {
			if err := c.script("cluster", "purge"); err != nil {
				fmt.Fprintln(os.Stderr, "test/cluster:", err)
			}
		}()
	}
	fmt.Printf("the cluster is ready after %v\n", time.Since(began).Round(time.Second))
	the = c
	code := m.Run()
	if err := writeMeasured(); err != nil {
		fmt.Fprintln(os.Stderr, "test/cluster:", err)
		return 1
	}
	return code
}

// cluster is one Kubernetes node.
type cluster struct {
	state    string // directory of its state
	programs string // directory of Kubernetes' programs
	helm     string // the program
	api      *api
}

func newCluster(ctx context.Context) (*cluster, error) {
	c := &cluster{state: "/var/lib/aether-kube"}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("only root can run a Kubernetes node")
	}
	if err := c.script("setup"); err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, c.path("setup"), "-print").Output()
	if err != nil {
		return nil, err
	}
	c.programs = strings.TrimSpace(string(out))
	if !*keep {
		if err := c.script("cluster", "purge"); err != nil { // of a run that was killed
			return nil, err
		}
	}
	if err := c.script("cluster", "start"); err != nil {
		return nil, err
	}
	var files []string
	for _, variable := range images {
		files = append(files, runfile.Path(variable))
	}
	if err := c.script("cluster", append([]string{"import"}, files...)...); err != nil {
		return nil, err
	}
	if c.api, err = newAPI(c.state); err != nil {
		return nil, err
	}
	c.helm, err = buildHelm(ctx, c.state)
	return c, err
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

// buildHelm builds helm from its module, once per state of it (Go's cache).
func buildHelm(ctx context.Context, dir string) (string, error) {
	helm := filepath.Join(dir, "helm")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", helm, "helm.sh/helm/v4/cmd/helm")
	cmd.Dir = filepath.Join(repository, "tools/helm")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build helm: %w\n%s", err, out)
	}
	return helm, nil
}
