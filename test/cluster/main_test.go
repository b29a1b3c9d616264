// Package cluster rolls the charts' pods on a real Kubernetes node under load:
// real kubelet, controllers, scheduler, etcd and containerd, made by tools/kube,
// and images and charts of this repository. docs/kubernetes-tests.md has what it
// found.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
var images = []string{"AGENT_IMAGE", "AGENT_NEXT_IMAGE", "ENVOY_IMAGE_1_36_4", "ENVOY_IMAGE_1_40_0", "ROUTER_IMAGE"}

var (
	repository = absolute(runfile.Root("../.."))
	keep       = flag.Bool("keep", false, "leave the cluster running, and take one that runs")
)

func absolute(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		panic(err)
	}
	return path
}

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
	cache, err := os.UserCacheDir()
	if err != nil {
		return 1, err
	}
	mine, err := machine()
	if err != nil {
		return 1, err
	}
	the = &cluster{state: filepath.Join(cache, "aether/kube/state"), machine: mine}
	alone, err := the.reserve()
	if err != nil {
		return 1, err
	}
	defer alone.Close()
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
	machine  string // directory in /proc of a process with the machine's own mounts
	programs string // directory of Kubernetes' programs
	helm     helm.Helm
	api      *api
}

// reserve waits until no other run of these tests has the node; one that keeps it
// shares it with others that do.
func (c *cluster) reserve() (io.Closer, error) {
	if err := os.MkdirAll(filepath.Dir(c.state), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.Create(c.state + ".lock")
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if *keep {
		how = syscall.LOCK_SH
	}
	if syscall.Flock(int(lock.Fd()), how|syscall.LOCK_NB) == nil {
		return lock, nil
	}
	fmt.Println("another run of these tests has the node; waiting for its end")
	if err := syscall.Flock(int(lock.Fd()), how); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, nil
}

// begin makes what is missing, starts the node and gives it the images.
func (c *cluster) begin(ctx context.Context) (err error) {
	if err := c.script("setup"); err != nil {
		return err
	}
	if c.programs, err = c.tell("setup", "-print"); err != nil {
		return err
	}
	if !*keep {
		if err := c.purge(); err != nil { // of a run that was killed
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

// machine is a directory in /proc of a process whose mounts are the machine's. A
// Bazel without a registry runs in a Debian of its own (tools/airgap), which has
// neither containerd nor the place where the kubelet mounts; tools/test, which runs
// it, names itself.
func machine() (string, error) {
	if pid := os.Getenv("AETHER_MACHINE_PID"); pid != "" {
		return "/proc/" + pid, nil
	}
	if _, err := os.Stat("/opt/registry/bazel_registry.json"); err == nil {
		return "", errors.New("this Bazel doesn't see the machine's own root: use tools/test cluster")
	}
	return "/proc/self", nil
}

// script runs one of tools/kube; what it says is in its error.
func (c *cluster) script(name string, args ...string) error {
	_, err := c.tell(name, args...)
	return err
}

// tell runs one of tools/kube and returns what it prints.
func (c *cluster) tell(name string, args ...string) (string, error) {
	line := append([]string{"--mount=" + c.machine + "/ns/mnt", "--", filepath.Join(repository, "tools/kube", name)}, args...)
	cmd := exec.Command("nsenter", line...)
	cmd.Env = append(os.Environ(), "AETHER_KUBE_STATE="+c.state)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("tools/kube/%s %s: %w\n%s", name, strings.Join(args, " "), err, &complaint)
	}
	return strings.TrimSpace(string(out)), err
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
