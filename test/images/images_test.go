// Package images runs the images in a Docker engine.
package images

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/mount"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

const (
	agentImage = "aether/agent:dev"
	installed  = "/opt/aether" // where the volume is, in both images
)

// install runs the agent's image as an init container does.
var install = []string{"proxy-supervisor", "--install-path", installed + "/supervisor", "--install-readiness-path", installed + "/proxy-ready"}

func TestTheAgentImageInstallsSupervisorAndProbe(t *testing.T) {
	e := newEngine(t)
	e.load("AGENT_IMAGE")
	on := e.volume(installed)
	e.succeeds(container{image: agentImage, args: install, mounts: on})
	for program, args := range map[string][]string{"supervisor": {"version"}, "proxy-ready": {"--version"}} {
		out := e.succeeds(container{image: agentImage, entrypoint: filepath.Join(installed, program), args: args, mounts: on})
		if !strings.Contains(out, "devel") {
			t.Errorf("%s says %q", program, out)
		}
	}
	// Over a supervisor that is there, and may be running.
	e.succeeds(container{image: agentImage, args: install, mounts: on})
}

func TestAnInstallationThatCantBeIsAClearError(t *testing.T) {
	e := newEngine(t)
	e.load("AGENT_IMAGE")
	readOnly := e.volume(installed)
	readOnly[0].ReadOnly = true
	for name, c := range map[string]struct {
		mounts []mount.Mount
		tmpfs  map[string]string
		want   string
	}{
		"full":      {nil, map[string]string{installed: "size=1m,uid=65532"}, "no space left on device"},
		"read-only": {readOnly, nil, "read-only file system"},
		"no volume": {nil, nil, "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out := e.run(container{image: agentImage, args: install, mounts: c.mounts, tmpfs: c.tmpfs})
			if code != 1 || !strings.Contains(out, c.want) || !strings.Contains(out, "--install-path: copy /usr/local/bin/agent to /opt/aether/supervisor") {
				t.Errorf("exit code %d, want 1 and %q: %s", code, c.want, out)
			}
		})
	}
}

func TestTheRouterImageInstallsTheWaiter(t *testing.T) {
	const image = "aether/atenet-router:dev"
	e := newEngine(t)
	e.load("ROUTER_IMAGE")
	on := e.volume(installed)
	for range 2 { // over one that is there, too
		e.succeeds(container{image: image, args: []string{"install-waiter", installed + "/drain-wait"}, mounts: on})
	}
	if out := e.succeeds(container{image: image, entrypoint: installed + "/drain-wait", args: []string{"--version"}, mounts: on}); !strings.Contains(out, "devel") {
		t.Errorf("the waiter says %q", out)
	}
	if out := e.succeeds(container{image: image, args: []string{"bootstrap"}}); !strings.Contains(out, "atenet-xds") {
		t.Errorf("the router's bootstrap is %q", out)
	}
}

func TestNoImageHasAShell(t *testing.T) {
	e := newEngine(t)
	e.load("AGENT_IMAGE")
	for _, shell := range []string{"/bin/sh", "/bin/bash", "/busybox/sh"} {
		if code, out := e.run(container{image: agentImage, entrypoint: shell}); code == 0 || !strings.Contains(out, "no such file") {
			t.Errorf("%s: exit code %d, %s", shell, code, out)
		}
	}
}

// The whole of it: the installed supervisor as the Envoy image's entrypoint, as
// uid 65532, without capabilities, with a read-only root. The network is the
// machine's, so that the load reaches it as it reaches a DaemonSet's.
func TestTheEnvoyImageHotRestartsUnderLoad(t *testing.T) {
	e := newEngine(t)
	e.load("AGENT_IMAGE")
	for _, version := range []string{"1.40.0", "1.39.3", "1.36.4"} {
		t.Run(version, func(t *testing.T) { e.with(t).hotRestarts(version) })
	}
}

func (e engine) hotRestarts(version string) {
	t := e.T
	e.load("ENVOY_IMAGE_" + strings.ReplaceAll(version, ".", "_"))
	volume := e.volume(installed)
	e.succeeds(container{image: agentImage, args: install, mounts: volume})
	volume[0].ReadOnly = true

	n, err := node.New(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	giveToNonroot(t, n.Dir)
	n.EnvoyPath = "/usr/local/bin/envoy" // the image's own
	running := e.start(container{
		image: "aether/envoy:" + version, args: n.Args()[1:], // the entrypoint has the first
		mounts:      append(volume, mount.Mount{Type: mount.TypeBind, Source: n.Dir, Target: n.Dir}),
		hostNetwork: true,
	})
	if st := await(t, n, node.Serves(0)); !strings.Contains(st.Epochs[0].EnvoyVersion, version) {
		t.Errorf("Envoy %q in the image of %s", st.Epochs[0].EnvoyVersion, version)
	}
	plan := load.DefaultPlan(n.Target())
	plan.Timeout, plan.StreamDuration = 30*time.Second, time.Second
	runner, err := load.Start(t.Context(), plan)
	if err != nil {
		t.Fatal(err)
	}
	running.kill("HUP")
	await(t, n, node.Alone(1))
	if err := n.Write("v2"); err != nil { // a changed bootstrap
		t.Fatal(err)
	}
	await(t, n, node.Alone(2))
	report := runner.Stop()
	if report.Failures() > 0 || report.OK() == 0 {
		t.Errorf("of %d operations %d failed:\n%s", report.Started(), report.Failures(), report.Table())
	}
	running.kill("TERM")
	if code := running.wait(); code != 0 {
		t.Errorf("stopped with exit code %d:\n%s", code, running.output())
	}
}

// await polls the control socket, which the machine's root may use.
func await(t *testing.T, n *node.Node, want func(node.Status) bool) node.Status {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		var st node.Status
		err := n.ControlCall(t.Context(), http.MethodGet, "/v1/status", &st)
		if err == nil && want(st) {
			return st
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("waited a minute in vain; last: %+v, %v", st, err)
		}
	}
}

func giveToNonroot(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nonroot, nonroot)
	})
	if err != nil {
		t.Fatal("needs root: ", err)
	}
}
