package cluster

import (
	"net/http"
	"testing"

	"aether.internal/test/node"
)

// What the kubelet makes of the marker.
func TestProbes(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "probes", surging)
	r.play(probeScenarios...)
}

var probeScenarios = []scenario{
	{name: "probe: not ready while the new pod's Envoy initialises; the old pod stays", play: notReadyBefore},
	{name: "probe: the old pod is not ready three failed probes after the takeover, and is deleted for it", play: notReadyAfter},
}

func notReadyBefore(c *scene) {
	old, next, open := c.initialising()
	epoch := c.epoch(old)
	c.until("three probes of the new pod to have failed", func() bool { return c.failedProbes(next) >= 3 })
	if p, _ := c.pods.last(next.Metadata.UID); p.ready() {
		c.Errorf("%s is ready and doesn't serve", p.Metadata.Name)
	}
	if p, gone := c.pods.last(old.Metadata.UID); gone || p.deleted() || !p.ready() {
		c.Errorf("the old pod isn't what it was: %+v", p)
	}
	open()
	c.takenOver(old, epoch+1)
}

// notReadyAfter: available only after a minute, the new pod would leave the old one
// alone for so long; that it is not ready any more lets the DaemonSet delete it.
func notReadyAfter(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.set["minReadySeconds"] = "60"
	c.upgrade("v1", map[string]string{"podAnnotations.round": "two"})
	c.rolls++
	next := c.successor(old)
	c.await(next, "to serve", node.Serves(epoch+1))
	if last := c.gone(old); last.exitCode() != 0 {
		c.Errorf("%s ended with exit code %d, want 0", last.Metadata.Name, last.exitCode())
	}
	for _, turn := range c.pods.turned() {
		if turn.pod == old.Metadata.Name && !turn.ready && turn.deleted {
			c.Errorf("deleted before it was not ready")
		}
	}
	c.serving(next, epoch+1)
	if p := c.only(); p.Metadata.UID != next.Metadata.UID || !p.ready() {
		c.Errorf("not the new pod, or not ready: %+v", p)
	}
}

// failedProbes counts a pod's failed readiness probes, as its events tell.
func (c *scene) failedProbes(p pod) int {
	var list struct {
		Items []struct {
			Reason         string
			Count          int
			InvolvedObject struct{ UID string }
		}
	}
	_ = c.api.call(c.ctx, http.MethodGet, "/api/v1/namespaces/"+c.namespace+"/events", nil, &list)
	n := 0
	for _, e := range list.Items {
		if e.Reason == "Unhealthy" && e.InvolvedObject.UID == p.Metadata.UID {
			n += e.Count
		}
	}
	return n
}
