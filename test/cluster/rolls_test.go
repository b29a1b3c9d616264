package cluster

import (
	"fmt"
	"strings"
	"testing"

	"aether.internal/test/node"
)

// A DaemonSet's life, from plain Envoy to the fiftieth release: the order is that
// of docs/pods.md.
func TestRolls(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "rolls", map[string]string{"image.tag": "1.36.4"})
	r.play(rollScenarios...)
}

const between = "nothing listens between the two pods"

var rollScenarios = []scenario{
	{
		name: "first roll, from plain Envoy to the supervisor: delete first",
		harm: between, play: deleteFirst,
	},
	{name: "Envoy's image, 1.36.4 to 1.40.0: surge", play: envoyImage},
	{name: "bootstrap and pod template changed in one upgrade: surge", play: bothChanged},
	{name: "20 rolls in a row: surge", play: twentyRolls},
	{name: "supervisor's image: surge", play: supervisorImage},
	{name: "helm rollback of that: surge", play: rollback},
}

func deleteFirst(c *scene) {
	plain := c.only()
	c.rolls++
	c.upgrade("v2", crossPod)
	c.gone(plain)
	c.serving(c.rolled(), 0)
	// Only how the next roll is made: no roll by itself.
	p := c.only()
	c.upgrade("v2", surging)
	if now := c.rolled(); now.Metadata.UID != p.Metadata.UID {
		c.Errorf("surge: true has made another pod")
	}
}

func envoyImage(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.rolls++
	c.upgrade("v2", map[string]string{"image.tag": "1.40.0"})
	next := c.takenOver(old, epoch+1)
	st := c.await(next, "to serve", node.Alone(epoch+1))
	if got := st.Of(epoch + 1).EnvoyVersion; !strings.Contains(got, "1.40.0") {
		c.Errorf("Envoy %q serves, want 1.40.0", got)
	}
}

// bothChanged: the old pod sees the new ConfigMap while the new pod is on its way.
// Whichever is first, the other waits for it.
func bothChanged(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.rolls++
	c.upgrade("v3", map[string]string{"podAnnotations.changed": "yes"})
	last := c.gone(old)
	if code := last.exitCode(); code != 0 {
		c.Errorf("%s ended with exit code %d, want 0", last.Metadata.Name, code)
	}
	next := c.rolled()
	c.await(next, "to serve the next epoch or the one after it", func(s node.Status) bool {
		return s.Ready && len(s.Epochs) == 1 && (s.Serving == epoch+1 || s.Serving == epoch+2)
	})
	if got := c.tag(); got != "v3" {
		c.Errorf("answered by %q, want v3", got)
	}
}

// twentyRolls wants each pod to serve the next epoch, and no stat to leap.
func twentyRolls(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	rates := c.watchRates()
	for range 20 {
		epoch++
		c.restart()
		old = c.takenOver(old, epoch)
	}
	rates.judge()
	text, err := c.exported()
	c.must(err)
	if want := fmt.Sprintf("envoy_server_hot_restart_generation{} %d\n", epoch+1); !strings.Contains(text, want) {
		c.Errorf("the stats have no %q", want)
	}
}

func supervisorImage(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.rolls++
	c.upgrade("v3", map[string]string{"agent.image.tag": "next"})
	next := c.takenOver(old, epoch+1)
	if got := c.agentVersion(next); got != "next" {
		c.Errorf("supervisor %q, want next", got)
	}
}

func rollback(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.rolls++
	c.helmed("rollback", chartName)
	next := c.takenOver(old, epoch+1)
	if got := c.agentVersion(next); got == "next" {
		c.Errorf("supervisor %q after the rollback", got)
	}
	c.set["agent.image.tag"] = "dev"
}

// agentVersion asks the program in the pod.
func (c *scene) agentVersion(p pod) string {
	c.Helper()
	out := c.kube("exec", "-n", c.namespace, p.Metadata.Name, "-c", "envoy", "--", "/opt/aether/supervisor", "version")
	_, version, _ := strings.Cut(out, "agent ")
	return strings.TrimSuffix(strings.Fields(version + " ?")[0], ",")
}
