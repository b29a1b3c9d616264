package containers

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	tc "github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"

	"aether.internal/test/containers/actor"
	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
)

// Where things are for every container. Ports are free in a new namespace.
const (
	shared     = "/shared" // certificates and sockets, the tests' own
	adminURL   = "http://127.0.0.1:9901"
	probePath  = installed + "/proxy-ready"
	superPath  = installed + "/supervisor"
	markerPath = "/run/aether-proxy/ready"
)

// node is one machine as its pods see it: a network namespace and a /dev/shm,
// held by a container of their own, and a volume with what they share.
type node struct {
	*testing.T
	volume    string
	dir       string // the volume, as this process sees it
	owner     int    // of what pods write to
	stateBind string // what is mounted at /run/aether/hotrestart
	stateSeen string // that, as this process sees it
	sandbox   tc.Container
	actor     *actor.Client
	bootstrap bootstrap.Options
}

// newNode makes one; nothing of ours runs there yet.
func newNode(t *testing.T) *node {
	t.Helper()
	return newNodeOf(t, nonroot)
}

// newNodeOf makes one whose pods run as another user.
func newNodeOf(t *testing.T, uid int) *node {
	t.Helper()
	engine.use(t)
	n := &node{T: t, owner: uid}
	var err error
	n.volume, err = engine.newVolume(t.Context())
	n.must(err)
	t.Cleanup(func() {
		if err := engine.removeVolume(n.volume); err != nil {
			t.Error(err)
		}
	})
	n.dir, err = engine.mountpoint(t.Context(), n.volume)
	n.must(err)
	n.stateSeen = n.folder("state", 0o700)
	n.stateBind = n.stateSeen
	n.sandboxIt()
	n.furnish()
	return n
}

func (n *node) sandboxIt() {
	n.Helper()
	n.sandbox = n.container(insideImage, confined(), binds(n.folder("shared", 0o777)+":"+shared),
		tc.WithHostConfigModifier(func(h *container.HostConfig) { h.IpcMode = "shareable" }),
		tc.WithCmd(shared+"/actor.sock"), tc.WithWaitStrategy(wait.ForLog(actor.Started).WithPollInterval(20*time.Millisecond)))
	n.actor = actor.NewClient(filepath.Join(n.dir, "shared", "actor.sock"))
	n.Cleanup(n.actor.Close)
}

// furnish decides what all bootstraps have in common.
func (n *node) furnish() {
	n.Helper()
	up, err := n.actor.Addresses(n.Context())
	n.must(err)
	certificate, err := bootstrap.NewCertificate(filepath.Join(n.dir, "shared"))
	n.must(err)
	for _, path := range []*string{&certificate.CertPath, &certificate.KeyPath, &certificate.CAPath} {
		n.must(os.Chmod(*path, 0o644))
		*path = filepath.Join(shared, filepath.Base(*path))
	}
	n.bootstrap = bootstrap.Options{
		Admin: adminURL[len("http://"):], HTTP: 10080, HTTPS: 10443, TCP: 10081, TLS: 10444,
		UpstreamHTTP: up.HTTP, UpstreamTCP: up.TCP, Certificate: certificate,
	}
}

// folder makes a directory in the volume.
func (n *node) folder(name string, mode os.FileMode) string {
	n.Helper()
	path := filepath.Join(n.dir, name)
	n.must(os.Mkdir(path, mode))
	n.must(os.Chmod(path, mode))
	n.must(os.Chown(path, n.owner, n.owner))
	return path
}

// container starts one that the test's end removes.
func (n *node) container(image string, options ...tc.ContainerCustomizer) tc.Container {
	n.Helper()
	c, err := tc.Run(n.Context(), image, options...)
	tc.CleanupContainer(n, c, tc.StopTimeout(0))
	if err != nil {
		n.Fatalf("%s: %v", image, err)
	}
	return c
}

func (n *node) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// until polls.
func (n *node) until(what string, is func() bool) {
	n.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for timeout := time.After(patience); !is(); {
		select {
		case <-tick.C:
		case <-timeout:
			n.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}

// mixed starts every kind of operation, by name. One kept connection of each
// kind: a draining epoch can tell one to close only when it is used (fact 14).
func (n *node) mixed(streams time.Duration) {
	n.Helper()
	plan := load.DefaultPlan(n.bootstrap.Target())
	for i := range plan.Kinds {
		plan.Kinds[i].Connections = 1
	}
	plan.StreamDuration = streams
	n.load(actor.Load{Name: "mixed", Plan: plan.ForThisMachine()})
}

// load starts one and waits for its first success.
func (n *node) load(l actor.Load) {
	n.Helper()
	l.Timeout, l.RootCAs, l.CA = patience/2, nil, n.bootstrap.Certificate.CAPath // a busy machine is no failure
	n.must(n.actor.Load(n.Context(), l))
	n.until(l.Name+"'s first answers", func() bool {
		r, err := n.actor.Report(n.Context(), actor.Ask{Name: l.Name})
		return err == nil && r.OK() >= len(l.Kinds)
	})
}

// hold opens proxied TCP connections in ping-pong, until they are let go.
func (n *node) hold(name string, connections int) {
	n.Helper()
	n.must(n.actor.Load(n.Context(), actor.Load{Name: name, Plan: load.Plan{
		Target: load.Target{TCP: n.bootstrap.Target().TCP}, StreamDuration: time.Hour,
		Kinds: []load.KindPlan{{Kind: load.TCPHold, Rate: 100, MaxOutstanding: connections}}, // what would be more isn't begun
	}}))
	n.until("the connections to be there", func() bool {
		r, err := n.actor.Report(n.Context(), actor.Ask{Name: name})
		return err == nil && r.Overruns() > 0
	})
}

// letGo closes what is held, of which so many connections are cut before.
func (n *node) letGo(name string, cut int) {
	n.Helper()
	n.until("connections to be cut", func() bool {
		r, err := n.actor.Report(n.Context(), actor.Ask{Name: name})
		return err == nil && r.Failures() >= cut
	})
	r, err := n.actor.Report(n.Context(), actor.Ask{Name: name, Stop: true, Cut: true})
	n.must(err)
	if r.Failures() != cut {
		n.Errorf("%s: %d of %d connections were cut, want %d: %v", name, r.Failures(), r.Started(), cut, r.Errors)
	}
}

// unharmed stops a load and fails the test for anything that was refused,
// reset, cut or timed out, and for a kind that never succeeded.
func (n *node) unharmed(name string) load.Report {
	n.Helper()
	r, err := n.actor.Report(n.Context(), actor.Ask{Name: name, Stop: true})
	n.must(err)
	for _, k := range r.Kinds {
		if k.OK == 0 {
			n.Errorf("%s (tls %t) never succeeded", k.Kind, k.TLS)
		}
	}
	if r.Failures() > 0 {
		n.Errorf("%s: %d failures of %d\n%s", name, r.Failures(), r.Started(), r.Table())
		for _, e := range r.Errors {
			n.Logf("%s (tls %t) at %v, %s: %s", e.Kind, e.TLS, e.Offset, e.Heading, e.Message)
		}
	}
	n.Logf("%s: %d operations of %d kinds, %d failures, %d permitted retries, answered by %v", name, r.OK(), len(r.Kinds), r.Failures(), r.Retried(), r.Epochs())
	return r
}
