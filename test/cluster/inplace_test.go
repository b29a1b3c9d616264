package cluster

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/test/node"
	"aether.internal/tools/envoy/fetch"
)

// One pod that stays: what changes is its ConfigMap and a binary on a volume.
func TestInPlace(t *testing.T) {
	t.Parallel()
	r := prepareRelease(t, "in-place")
	install(t, "1.36.4", r.dir)
	r.serve(inPlace, map[string]string{
		"proxy.hotRestart.binary.volume.hostPath.path": r.dir,
		"proxy.hotRestart.binary.path":                 "envoy",
	})
	r.play(inPlaceScenarios...)
}

var inPlaceScenarios = []scenario{
	{name: "in place: ConfigMap replaced, which the kubelet does by a swap of `..data`", play: configMapReplaced},
	{name: "in place: broken bootstrap refused, as status tells; then a good one", play: brokenBootstrap},
	{name: "in place: 20 reloads in a row; to the kubelet the pod is ready throughout", play: twentyReloads},
	{name: "in place: Envoy's binary on a volume replaced, 1.36.4 by 1.40.0", play: binaryReplaced},
}

func configMapReplaced(c *scene) {
	p := c.only()
	data := filepath.Join(c.state, "kubelet/pods", p.Metadata.UID, "volumes/kubernetes.io~configmap/config/..data")
	before, err := os.Readlink(data)
	c.must(err)
	c.upgrade("v2")
	c.until("the new bootstrap to answer", func() bool { return c.tag() == "v2" })
	c.serving(p, 1)
	after, err := os.Readlink(data)
	c.must(err)
	if before == after {
		c.Errorf("..data is still %s: that was no swap", after)
	}
	c.samePod(p)
}

func brokenBootstrap(c *scene) {
	p := c.only()
	epoch := c.epoch(p)
	broken := c.bootstrap("broken")
	broken["static_resources"].(map[string]any)["listenrs"] = []any{}
	c.upgradeWith(broken)
	st := c.await(p, "to refuse it", func(s node.Status) bool { return s.LastFailure != nil && s.LastFailure.Step == "validate" })
	if st.Serving != epoch || !st.Ready || !strings.Contains(st.LastFailure.Error, "listenrs") {
		c.Errorf("after a broken bootstrap: %+v, %+v", st, st.LastFailure)
	}
	if got := c.tag(); got != "v2" {
		c.Errorf("answered by %q, want v2", got)
	}
	c.upgrade("v3")
	c.until("the good bootstrap to answer", func() bool { return c.tag() == "v3" })
	c.serving(p, epoch+1)
	c.samePod(p)
}

// twentyReloads: no probe may see a moment without a fresh marker.
func twentyReloads(c *scene) {
	p := c.only()
	epoch, turns := c.epoch(p), len(c.pods.turned())
	for range 20 {
		epoch++
		out := c.kube("exec", "-n", c.namespace, p.Metadata.Name, "-c", "envoy", "--", "/opt/aether/supervisor", "proxyctl", "reload", "--wait")
		if st := c.epoch(p); st != epoch {
			c.Fatalf("epoch %d serves after reload, want %d:\n%s", st, epoch, out)
		}
	}
	c.serving(p, epoch)
	if now := c.pods.turned(); len(now) != turns {
		c.Errorf("readiness has changed: %+v", now[turns:])
	}
	c.samePod(p)
}

func binaryReplaced(c *scene) {
	p := c.only()
	epoch := c.epoch(p)
	install(c.T, "1.40.0", c.dir)
	st := c.serving(p, epoch+1)
	if got := st.Of(epoch + 1).EnvoyVersion; !strings.Contains(got, "1.40.0") {
		c.Errorf("Envoy %q serves, want 1.40.0", got)
	}
	c.samePod(p)
}

// samePod: no pod came, none went, none was restarted or not ready.
func (c *scene) samePod(p pod) {
	c.Helper()
	now := c.only()
	if now.Metadata.UID != p.Metadata.UID || !now.ready() || now.restarts() != 0 {
		c.Errorf("the pod isn't what it was: %+v", now)
	}
}

// install renames a copy of an Envoy into place: a link would lead out of the volume.
func install(t *testing.T, version, dir string) {
	t.Helper()
	from, err := fetch.Path(t.Context(), version)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyFile(from, filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "envoy")); err != nil {
		t.Fatal(err)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
