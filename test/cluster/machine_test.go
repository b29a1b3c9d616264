package cluster

import (
	"os"
	"testing"

	"aether.internal/test/node"
)

// What happens to the node and to its control plane: alone, since every pod of the
// node is hit.
func TestMachine(t *testing.T) {
	r := newRelease(t, "machine", surging)
	r.play(machineScenarios...)
}

const dark = "the node is dark until its pods are up again"

var machineScenarios = []scenario{
	{name: "kubelet restarted in the middle of a roll", play: kubeletRestarted},
	{name: "kubelet killed, then a roll begun, then the kubelet started", play: kubeletKilled},
	{name: "control plane down in the middle of a roll, then up", play: controlPlaneDown},
	{name: "containerd restarted in the middle of a roll", play: containerdRestarted},
	{name: "node lost and booted again, shared memory empty", harm: dark, restarts: -1, play: func(c *scene) { reboot(c, true) }},
	{name: "node lost and booted again, shared memory and sockets as they were", harm: dark, restarts: -1, play: func(c *scene) { reboot(c, false) }},
}

func (c *scene) service(what string, names ...string) {
	c.Helper()
	c.must(c.script("cluster", append([]string{what}, names...)...))
}

func kubeletRestarted(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.restart()
	c.successor(old)
	c.service("stop", "kubelet")
	c.service("start", "kubelet")
	c.takenOver(old, epoch+1)
}

func kubeletKilled(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.service("crash", "kubelet")
	c.restart()
	c.successor(old) // the controllers make it; nobody starts it
	if got := c.epoch(old); got != epoch {
		c.Errorf("epoch %d serves, want %d", got, epoch)
	}
	c.service("start", "kubelet")
	c.takenOver(old, epoch+1)
}

// controlPlaneDown: the new pod's takeover needs nobody but the kubelet.
func controlPlaneDown(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.restart()
	next := c.successor(old)
	c.await(next, "to be there", func(node.Status) bool { return true })
	control := []string{"kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"}
	c.service("crash", control...)
	c.await(next, "to serve", node.Serves(epoch+1))
	c.await(old, "to be superseded", func(s node.Status) bool { return s.State == "superseded" })
	c.service("start", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
	c.takenOver(old, epoch+1)
}

func containerdRestarted(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.restart()
	c.successor(old)
	c.service("crash", "containerd")
	c.service("start", "containerd")
	c.takenOver(old, epoch+1)
}

// reboot ends everything at once. What a tmpfs had is gone, or, as after the loss of
// every process, still there.
func reboot(c *scene, emptied bool) {
	c.service("crash")
	if emptied {
		c.must(os.RemoveAll("/run/aether/" + c.namespace))
	}
	c.service("start")
	c.until("an answer", func() bool { return c.tag() != "" })
	p := c.rolled()
	c.serving(p, 0)
	c.restart()
	c.takenOver(p, 1)
}
