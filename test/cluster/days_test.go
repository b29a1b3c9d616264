package cluster

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// The bad days of a node that rolls by surge.
func TestDays(t *testing.T) {
	t.Parallel()
	r := newRelease(t, "days", surging)
	r.play(dayScenarios...)
}

const (
	answering = "what it was answering, and whoever came before an epoch was LIVE again"
	alone     = "nothing listens until the kubelet has restarted the container"
)

var dayScenarios = []scenario{
	{name: "image that never gets ready: the roll stops, the node serves; helm rollback", restarts: -1, play: neverReady},
	{name: "image that isn't there; helm rollback", play: noImage},
	{name: "pod deleted, no roll: `successor-wait` bridges it", play: podDeleted},
	{name: "pod evicted, no roll", play: podEvicted},
	{name: "old pod deleted before the new one has started its Envoy", play: deletedBefore},
	{name: "old pod deleted while the new one's Envoy initialises", play: deletedWhile},
	{name: "old pod deleted after the takeover", play: deletedAfter},
	{name: "both pods deleted at once, the new one's Envoy initialising: a third takes over", play: bothDeleted},
	{name: "grace period runs out with the successor attached", harm: "what the old pod still had ends with it", play: graceRunsOut},
	{name: "kill -9 of the new Envoy while it initialises", restarts: 1, play: initialisingKilled},
	{name: "kill -9 of the new Envoy after the takeover", harm: answering, play: newEnvoyKilled},
	{name: "kill -9 of the new pod's supervisor after the takeover", harm: answering, restarts: 1, play: supervisorKilled},
	{name: "kill -9 of the old Envoy after the takeover", harm: "what it was answering", play: oldEnvoyKilled},
	{name: "kill -9 of the old pod's supervisor after the takeover", harm: "what its Envoy was answering", restarts: -1, play: oldSupervisorKilled},
	{name: "kill -9 of Envoy, alone on the node", harm: alone, restarts: 1, play: envoyKilled},
	{name: "kill -9 of the supervisor, alone on the node, soon after that", harm: alone + ", this time after its back-off of 10 s", restarts: 1, play: aloneKilled},
}

// neverReady is an image without Envoy: its supervisor can't start anything.
func neverReady(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.upgrade("v1", map[string]string{"image.repository": "aether/agent", "image.tag": "dev"})
	bad := c.successor(old)
	c.until("the new pod to be tried twice", func() bool {
		p, _ := c.pods.last(bad.Metadata.UID)
		return p.restarts() >= 2
	})
	if st := c.epoch(old); st != epoch || c.daemonSet().rolled() {
		c.Errorf("epoch %d serves, the roll is over: %t", st, c.daemonSet().rolled())
	}
	c.rollBack(old, bad)
	c.set["image.repository"], c.set["image.tag"] = "aether/envoy", "1.40.0"
}

func noImage(c *scene) {
	old := c.only()
	c.upgrade("v1", map[string]string{"image.tag": "0.0.0", "image.pullPolicy": "Never"})
	bad := c.successor(old)
	c.until("the kubelet to miss the image", func() bool {
		p, _ := c.pods.last(bad.Metadata.UID)
		return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting != nil &&
			p.Status.ContainerStatuses[0].State.Waiting.Reason == "ErrImageNeverPull"
	})
	c.rollBack(old, bad)
	c.set["image.tag"], c.set["image.pullPolicy"] = "1.40.0", "IfNotPresent"
}

// rollBack leaves the old pod as it was: its template is the DaemonSet's again.
func (c *scene) rollBack(old, bad pod) {
	c.Helper()
	epoch := c.epoch(old)
	c.rolls++
	c.helmed("rollback", chartName)
	c.gone(bad)
	if now := c.rolled(); now.Metadata.UID != old.Metadata.UID {
		c.Errorf("the rollback has replaced the old pod, which had never gone wrong")
	}
	c.serving(old, epoch)
}

func podDeleted(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.delete(old)
	c.takenOver(old, epoch+1)
}

func podEvicted(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	path := "/api/v1/namespaces/" + c.namespace + "/pods/" + old.Metadata.Name + "/eviction"
	c.must(c.api.call(c.ctx, http.MethodPost, path, map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]string{"name": old.Metadata.Name},
	}, nil))
	c.takenOver(old, epoch+1)
}

func deletedBefore(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.restart()
	c.successor(old) // it exists, and has no container yet
	c.delete(old)
	c.takenOver(old, epoch+1)
}

func deletedWhile(c *scene) {
	old, next, open := c.initialising()
	epoch := c.epoch(old)
	c.delete(old)
	c.await(old, "to wait for its successor", func(s node.Status) bool { return s.State == "waiting" && s.Serving == epoch })
	open()
	c.takenOver(old, epoch+1)
	c.serving(next, epoch+1)
}

// initialising is a roll whose new pod's Envoy gets no further before open is called.
func (c *scene) initialising() (old, next pod, open func()) {
	c.Helper()
	old = c.only()
	open = c.gate.shut()
	c.Cleanup(open)
	c.restart()
	next = c.successor(old)
	c.await(next, "to have started its Envoy", func(s node.Status) bool { return s.State == "successor" && len(s.Epochs) == 2 })
	c.await(old, "to be contested", func(s node.Status) bool { return s.State == "contested" })
	return old, next, open
}

func deletedAfter(c *scene) {
	old := c.only()
	epoch := c.epoch(old)
	c.restart()
	next := c.successor(old)
	c.await(next, "to serve", node.Serves(epoch+1))
	c.delete(old) // before the DaemonSet may have done it
	c.takenOver(old, epoch+1)
}

// bothDeleted while the new pod is on its way: a third one takes over, within the
// old one's successor-wait.
func bothDeleted(c *scene) {
	old, next, open := c.initialising()
	epoch := c.epoch(old)
	c.delete(old)
	c.delete(next)
	c.gone(next)
	open()
	c.takenOver(old, epoch+1)
}

// graceRunsOut: a connection keeps the old epoch from being idle, so that nothing but
// the kubelet's SIGKILL ends it.
func graceRunsOut(c *scene) {
	held := c.hold()
	old := c.only()
	epoch := c.epoch(old)
	c.restart()
	next := c.successor(old)
	c.await(next, "to serve", node.Serves(epoch+1))
	c.kube("delete", "pod", old.Metadata.Name, "-n", c.namespace, "--grace-period=1", "--wait=false")
	if code := c.gone(old).exitCode(); code != 137 {
		c.Errorf("%s ended with exit code %d: the kubelet hasn't killed it", old.Metadata.Name, code)
	}
	if _, err := held.Read(make([]byte, 1)); err == nil {
		c.Error("the connection of the killed pod has an answer")
	}
	c.rolled()
	c.serving(next, epoch+1)
	c.stays(next, epoch+1)
}

func supervisorKilled(c *scene) {
	old, next, epoch := c.justTakenOver()
	c.kill(next, c.await(next, "to serve", node.Serves(epoch)).PID)
	c.gone(old)
	c.rolled()
	c.epoch(next)
}

// justTakenOver is a roll whose old epoch still drains: a stream holds it.
func (c *scene) justTakenOver() (old, next pod, epoch int) {
	c.Helper()
	old = c.only()
	epoch = c.epoch(old) + 1
	c.restart()
	next = c.successor(old)
	c.await(next, "to serve", node.Serves(epoch))
	return old, next, epoch
}

func newEnvoyKilled(c *scene) {
	old, next, epoch := c.justTakenOver()
	c.kill(next, c.await(next, "to serve", node.Serves(epoch)).Of(epoch).PID)
	c.takenOver(old, epoch)
}

// initialisingKilled: where the old pod is the faster, it heals what the dead newcomer
// has left by an epoch of its own, and the restarted container takes over from that.
func initialisingKilled(c *scene) {
	old, next, open := c.initialising()
	st := c.await(next, "to have started its Envoy", func(s node.Status) bool { return len(s.Epochs) == 2 })
	killed := st.Epochs[1]
	c.kill(next, killed.PID)
	open()
	if code := c.gone(old).exitCode(); code != 0 {
		c.Errorf("%s ended with exit code %d, want 0", old.Metadata.Name, code)
	}
	c.rolled()
	if got := c.epoch(next); got != killed.Epoch && got != killed.Epoch+1 {
		c.Errorf("epoch %d serves, want %d or the next", got, killed.Epoch)
	}
}

func oldEnvoyKilled(c *scene) {
	st := c.await(c.only(), "to serve", func(s node.Status) bool { return s.Serving >= 0 && s.Ready })
	old, _, epoch := c.justTakenOver()
	c.kill(old, st.Of(st.Serving).PID)
	c.takenOver(old, epoch)
}

// oldSupervisorKilled: where the kubelet restarts the old pod's container before the
// DaemonSet deletes it, it takes the node over once more, and gives it back.
func oldSupervisorKilled(c *scene) {
	old, next, _ := c.justTakenOver()
	c.kill(old, 1)
	c.gone(old)
	c.rolled()
	c.stays(next, c.serving(next, c.epoch(next)).Serving)
}

func envoyKilled(c *scene) {
	p := c.only()
	st := c.await(p, "to serve", func(s node.Status) bool { return s.Serving >= 0 && s.Ready })
	c.restarted(p, st.Of(st.Serving).PID)
}

func aloneKilled(c *scene) { c.restarted(c.only(), 1) }

// restarted kills a process of the only pod, whose container the kubelet starts again.
func (c *scene) restarted(p pod, inner int) {
	c.Helper()
	c.kill(p, inner)
	c.until("the container to be restarted", func() bool {
		now, _ := c.pods.last(p.Metadata.UID)
		return now.restarts() > p.restarts()
	})
	c.rolled()
	c.serving(p, 0)
}

// delete is `kubectl delete pod`, which doesn't wait.
func (c *scene) delete(p pod) {
	c.Helper()
	c.kube("delete", "pod", p.Metadata.Name, "-n", c.namespace, "--wait=false", "--ignore-not-found")
}

// hold is a connection that goes through the Envoy that serves now.
func (c *scene) hold() net.Conn {
	c.Helper()
	conn, err := net.Dial("tcp", c.boot.Target().TCP)
	c.must(err)
	c.Cleanup(func() { conn.Close() })
	c.must(conn.SetDeadline(time.Now().Add(patience)))
	_, err = conn.Write([]byte{1})
	c.must(err)
	_, err = io.ReadFull(conn, make([]byte, 1))
	c.must(err)
	return conn
}

// stays wants an epoch to serve on, longer than its Envoy's retries to reach a dead
// parent (fact 4: it aborts after ten seconds).
func (c *scene) stays(p pod, epoch int) {
	c.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(12 * time.Second); ; {
		if st, err := c.status(p); err != nil || st.Serving != epoch || !st.Ready {
			c.Fatalf("%+v, %v", st, err)
		}
		select {
		case <-tick.C:
		case <-end:
			return
		}
	}
}

// kill sends SIGKILL to a process of a pod, by its number in the pod.
func (c *scene) kill(p pod, inner int) {
	c.Helper()
	c.must(syscall.Kill(c.outer(p, inner), syscall.SIGKILL))
}

// outer is a pod's process as the node sees it.
func (c *scene) outer(p pod, inner int) int {
	c.Helper()
	// Its cgroup tells the pod, the last number of NSpid the process.
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	c.must(err)
	numbers := regexp.MustCompile(`(?m)^NSpid:\t(\d+)\t` + strconv.Itoa(inner) + `$`)
	for _, path := range statuses {
		cgroup, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		status, _ := os.ReadFile(path) // of a process that has ended: nothing
		found := numbers.FindSubmatch(status)
		if found == nil || !bytes.Contains(cgroup, []byte(p.Metadata.UID)) || bytes.HasPrefix(status, []byte("Name:\tpause\n")) {
			continue
		}
		pid, err := strconv.Atoi(string(found[1]))
		c.must(err)
		return pid
	}
	c.Fatalf("no process %d in %s", inner, p.Metadata.Name)
	return 0
}
