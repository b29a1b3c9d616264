// Package containers runs the images as pods of one node: containers that share
// a network namespace, a /dev/shm and a state directory and nothing else.
package containers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"
	tc "github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"

	"aether.internal/tools/runfile"
)

// tarballs are the images by the variables in which Bazel names them.
var tarballs = map[string]string{
	"AGENT_IMAGE":        "images/agent.linux_amd64.tar",
	"ENVOY_IMAGE_1_36_4": "images/envoy_1.36.4.linux_amd64.tar",
	"ENVOY_IMAGE_1_40_0": "images/envoy_1.40.0.linux_amd64.tar",
	"INSIDE_IMAGE":       "test/containers/inside.linux_amd64.tar",
	"REAPER_IMAGE":       "test/containers/reaper.linux_amd64.tar",
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if cgroup := os.Getenv(hogVariable); cgroup != "" {
		fmt.Fprintln(os.Stderr, hog(cgroup))
		return 1
	}
	// Where /.dockerenv is, the library looks for the engine at the gateway.
	if _, set := os.LookupEnv("TESTCONTAINERS_HOST_OVERRIDE"); !set {
		os.Setenv("TESTCONTAINERS_HOST_OVERRIDE", "127.0.0.1")
	}
	log.SetDefault(silent{}) // a line for each step of each container
	defer engine.close()
	return m.Run()
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// theEngine is a Docker engine of this machine with the images and with a volume
// that has the supervisor, as all tests of this process need them.
type theEngine struct {
	api    *client.Client
	volume string
	loaded map[string]bool
	err    error
	asked  bool
}

var engine = theEngine{loaded: map[string]bool{}}

// use makes the engine ready for a test. No test runs beside another.
func (e *theEngine) use(t *testing.T) {
	t.Helper()
	if !e.asked {
		e.asked = true
		e.err = e.begin(t.Context())
	}
	switch {
	case e.err == nil:
	case os.Getenv("AGENT_IMAGE") == "" && e.api == nil: // plain `go test ./...`
		t.Skip(e.err)
	default:
		t.Fatal(e.err)
	}
}

func (e *theEngine) begin(ctx context.Context) error {
	if os.Geteuid() != 0 {
		return errors.New("only root sees the engine's volumes")
	}
	api, err := client.New(client.FromEnv)
	if err != nil {
		return err
	}
	if _, err := api.Ping(ctx, client.PingOptions{}); err != nil {
		return fmt.Errorf("no Docker engine answers (tools/test starts one; --config=nodocker leaves these tests out): %w", err)
	}
	e.api = api
	if os.Getenv("AGENT_IMAGE") == "" {
		if err := build(ctx); err != nil {
			return err
		}
	}
	for _, variable := range []string{"REAPER_IMAGE", "INSIDE_IMAGE", "AGENT_IMAGE"} {
		if err := e.load(ctx, variable); err != nil {
			return err
		}
	}
	return e.install(ctx)
}

// build has Bazel make the images, for `go test` without it.
func build(ctx context.Context) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	bazel := "bazel"
	if _, err := exec.LookPath(bazel); err != nil {
		out, err := exec.CommandContext(ctx, filepath.Join(root, "tools/airgap/setup"), "-print").Output()
		if err != nil {
			return fmt.Errorf("the images are built by Bazel, and there is none (docs/bazel.md): %w", err)
		}
		bazel = strings.TrimSpace(string(out))
	}
	cmd := exec.CommandContext(ctx, bazel, "build", "--noshow_progress")
	for variable, tar := range tarballs {
		os.Setenv(variable, filepath.Join(root, "bazel-bin", tar))
		cmd.Args = append(cmd.Args, "//"+filepath.Dir(tar)+":"+filepath.Base(tar))
	}
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the images: %w\n%s", err, out)
	}
	return nil
}

// load gives the engine an image, as docker load does.
func (e *theEngine) load(ctx context.Context, variable string) error {
	if e.loaded[variable] {
		return nil
	}
	f, err := os.Open(runfile.Path(variable))
	if err != nil {
		return err
	}
	defer f.Close()
	result, err := e.api.ImageLoad(ctx, f)
	if err != nil {
		return err
	}
	defer result.Close()
	if _, err := io.Copy(io.Discard, result); err != nil {
		return fmt.Errorf("load %s: %w", f.Name(), err)
	}
	e.loaded[variable] = true
	return nil
}

// install runs the agent's image as an init container does: the supervisor and
// the probe are on a volume afterwards.
func (e *theEngine) install(ctx context.Context) (err error) {
	if e.volume, err = e.newVolume(ctx); err != nil {
		return err
	}
	c, err := tc.Run(ctx, agentImage, confined(), binds(e.volume+":"+installed),
		tc.WithCmd("proxy-supervisor", "--install-path", installed+"/supervisor", "--install-readiness-path", installed+"/proxy-ready"))
	if err == nil {
		_, err = e.exitCode(ctx, c)
	}
	return errors.Join(err, tc.TerminateContainer(c))
}

func (e *theEngine) close() {
	if e.api == nil {
		return
	}
	if e.volume != "" {
		if err := e.removeVolume(e.volume); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	e.api.Close()
}
