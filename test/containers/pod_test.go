package containers

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	tc "github.com/testcontainers/testcontainers-go"
	tcexec "github.com/testcontainers/testcontainers-go/exec"

	observe "aether.internal/test/node"
)

// pod is a container with a supervisor and its Envoys, and what only it has: a
// bootstrap, a marker, a control socket.
type pod struct {
	*node
	name, dir string
	version   string
	binds     []string
	host      []func(*container.HostConfig) // how it differs from the others
	user      string
	stateMode string // ":ro"
	container tc.Container

	listeners, clusters, more string // of the bootstrap, beyond the node's, as YAML
}

const newest = "1.40.0"

// pod is one that isn't started. Its bootstrap's tag is its name.
func (n *node) pod(name string) *pod {
	n.Helper()
	p := &pod{node: n, name: name, version: newest, dir: n.folder(name, 0o755)}
	p.binds = []string{n.folder(name+"/etc", 0o755) + ":/etc/envoy:ro", n.folder(name+"/run", 0o755) + ":/run/aether-proxy"}
	p.write(name)
	return p
}

// write renders the bootstrap and renames it into place.
func (p *pod) write(tag string) {
	p.Helper()
	o := p.bootstrap
	o.EpochTag = tag
	data, err := o.YAML()
	p.must(err)
	text := strings.Replace(string(data), "\n  listeners:", "\n  listeners:"+p.listeners, 1)
	text = strings.Replace(text, "\n  clusters:", "\n  clusters:"+p.clusters, 1)
	path := filepath.Join(p.dir, "etc", "envoy.yaml")
	p.must(os.WriteFile(path+".new", []byte(text+p.more), 0o644))
	p.must(os.Rename(path+".new", path))
}

// launch starts the container and waits for nothing. What isn't said here is
// the product's default.
func (p *pod) launch(args ...string) {
	p.Helper()
	p.must(engine.load(p.Context(), "ENVOY_IMAGE_"+strings.ReplaceAll(p.version, ".", "_")))
	sandbox := p.sandbox.GetContainerID()
	args = append([]string{"--drain-time", "2s", "--parent-shutdown-time", "60s", "--log-format", "json"}, args...)
	if !strings.Contains(strings.Join(args, " "), " -- ") {
		args = append(args, "--", "-l", "warn")
	}
	p.container = p.node.container("aether/envoy:"+p.version, confined(),
		binds(append(p.binds, engine.volume+":"+installed+":ro", p.stateBind+":/run/aether/hotrestart"+p.stateMode, filepath.Join(p.node.dir, "shared")+":"+shared)...),
		tc.WithHostConfigModifier(func(h *container.HostConfig) {
			h.NetworkMode = container.NetworkMode("container:" + sandbox)
			h.IpcMode = container.IpcMode("container:" + sandbox)
			for _, modify := range p.host {
				modify(h)
			}
		}),
		tc.WithConfigModifier(func(c *container.Config) { c.User = p.user }),
		tc.WithCmd(args...))
	p.Cleanup(func() {
		if p.Failed() {
			p.Logf("%s's log:\n%s", p.name, p.log())
		}
	})
}

// serves starts the container and waits until its epoch serves.
func (p *pod) serves(epoch int, args ...string) observe.Status {
	p.Helper()
	p.launch(args...)
	return p.await(fmt.Sprintf("%s: epoch %d to serve", p.name, epoch), observe.Serves(epoch))
}

// status asks the control socket, which root may.
func (p *pod) status() (observe.Status, error) {
	var st observe.Status
	at := observe.Node{Control: filepath.Join(p.dir, "run", "control.sock")}
	return st, at.ControlCall(p.Context(), http.MethodGet, "/v1/status", &st)
}

func (p *pod) await(what string, want func(observe.Status) bool) (last observe.Status) {
	p.Helper()
	for deadline := time.Now().Add(patience); ; {
		st, err := p.status()
		if err == nil && want(st) {
			return st
		}
		if time.Now().After(deadline) {
			p.Fatalf("%s: waited %v in vain; last: %+v, %v", what, patience, st, err)
		}
		if err != nil && !p.running() {
			p.Fatalf("%s: the container has ended", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// state wants a role.
func state(want string) func(observe.Status) bool {
	return func(s observe.Status) bool { return s.State == want }
}

func (p *pod) running() bool {
	st, err := p.container.State(context.WithoutCancel(p.Context()))
	return err == nil && st.Running
}

func (p *pod) signal(name string) {
	p.Helper()
	p.must(engine.signal(p.Context(), p.container, name))
}

// exits waits for the container's end.
func (p *pod) exits(want int) {
	p.Helper()
	code, err := engine.exitCode(p.Context(), p.container)
	if err != nil || code != want {
		p.Errorf("%s: exit code %d (%v), want %d", p.name, code, err, want)
	}
}

// stop is what the kubelet does: SIGTERM, and exit code 0 in good time.
func (p *pod) stop() {
	p.Helper()
	p.signal("TERM")
	p.exits(0)
}

// exec runs a program in the container, as an exec probe does.
func (p *pod) exec(command ...string) (code int, output string) {
	p.Helper()
	code, out, err := p.container.Exec(p.Context(), command, tcexec.Multiplexed())
	p.must(err)
	text, err := io.ReadAll(out)
	p.must(err)
	return code, string(text)
}

// ready is the readiness probe's verdict.
func (p *pod) ready() bool {
	p.Helper()
	code, _ := p.exec(probePath, markerPath)
	return code == 0
}

func (p *pod) log() string {
	r, err := p.container.Logs(context.WithoutCancel(p.Context()))
	if err != nil {
		return err.Error()
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := b.ReadFrom(r); err != nil {
		return err.Error()
	}
	return b.String()
}

// logs waits for a line.
func (p *pod) logs(text string) {
	p.Helper()
	p.until(fmt.Sprintf("%s to log %q", p.name, text), func() bool { return strings.Contains(p.log(), text) })
}
