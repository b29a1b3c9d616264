package cluster

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A rolling update of three pods, under clients that follow the EndpointSlices as a
// proxy of the node would.
func TestRouterRollsUnderLoad(t *testing.T) {
	t.Parallel()
	r := newRouters(t, "router-roll", 3)
	old := r.pods.pods()
	clients := r.follow()
	r.kube("rollout", "restart", "deployment/"+chartName+"-atenet-router", "-n", r.namespace)
	for _, p := range old {
		r.exited(p, "")
	}
	r.settled(3)
	report := clients.stop()
	if report.done == 0 || len(report.failed) > 0 {
		t.Errorf("%d of %d requests failed: %v", len(report.failed), report.done, report.failed)
	}
	t.Logf("%d requests, %d failed, by %d pods", report.done, len(report.failed), len(report.by))
	if len(report.by) < 6 {
		t.Errorf("only %d pods were asked, want the three of before and the three of after", len(report.by))
	}
	if n := r.pods.restarts(); n != 0 {
		t.Errorf("%d restarts", n)
	}
}

// The script that users run does what it says.
func TestVerifyRouter(t *testing.T) {
	t.Parallel()
	if the == nil {
		t.Skip("the images are built by Bazel: bazel test //test/cluster:cluster_test")
	}
	bin := t.TempDir()
	for name, program := range map[string]string{"kubectl": filepath.Join(the.programs, "kubectl"), "helm": the.helm.Path} {
		if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "tools/verify-router"), "-n", namespaces+"router-verify")
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KUBECONFIG="+filepath.Join(the.state, "admin.kubeconfig"))
	out, err := cmd.CombinedOutput()
	if got := strings.Count(string(out), "  ok    "); err != nil || got != 6 || strings.Contains(string(out), "FAIL") {
		t.Errorf("%v, %d of 6 lines are ok:\n%s", err, got, out)
	}
}

// What one pod does when it is deleted: idle, busy, with a parked request.
func TestRouterPodEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  []string
	}{{"containers", nil}, {"sidecar", []string{"--set", "nativeSidecar=true"}}} {
		t.Run(c.name, func(t *testing.T) {
			r := newRouters(t, "router-"+c.name, 1, c.set...)
			r.play("idle", idlePodEnds)
			r.play("busy", busyPodEnds)
			r.play("parked", parkedRequestSurvives)
		})
	}
}

// What happens to a pod whose drain loses one of its halves: slower, never wedged.
func TestRouterPodEndsWithoutItsHalves(t *testing.T) {
	t.Parallel()
	r := newRouters(t, "router-halves", 1)
	r.play("Envoy killed", envoyKilledInDrain)
	r.play("router killed", routerKilledInDrain)
}

// play runs a scenario on the pod that is there, and waits for the next one.
func (r *routers) play(name string, scenario func(*routers, pod)) {
	r.Helper()
	r.Run(name, func(t *testing.T) {
		mine := *r.release
		mine.T, mine.ctx = t, t.Context()
		one := &routers{release: &mine, workers: r.workers}
		scenario(one, one.settled(1)[0])
	})
}

// Right after its delay: nothing is waited for but that.
func idlePodEnds(r *routers, p pod) {
	r.ended(p, r.delete(p), routerDelay, routerDelay+10*time.Second, "")
}

// A request that takes longer than the delay is answered, and the pod ends then.
func busyPodEnds(r *routers, p pod) {
	slow := r.begin(p, "/slow?ms=12000")
	r.until("the request to be with the worker", func() bool { return r.pool(p, "many").Busy == 1 })
	since := r.delete(p)
	if a := <-slow; !a.fine() {
		r.Errorf("the running request: %+v", a)
	}
	r.ended(p, since, routerDelay, routerDeadline, "")
}

// A request that waits for a worker when its pod is deleted gets it, and its answer.
func parkedRequestSurvives(r *routers, p pod) {
	first := r.begin(p, "/one?ms=5000")
	r.parked(p, 1, 0)
	second := r.begin(p, "/one?ms=100")
	r.parked(p, 1, 1)
	since := r.delete(p)
	for what, answers := range map[string]<-chan answer{"running": first, "parked": second} {
		if a := <-answers; !a.fine() {
			r.Errorf("the %s request: %+v", what, a)
		}
	}
	r.ended(p, since, routerDelay, routerDeadline, "")
}

// An Envoy that is gone has nothing to drain: the router doesn't wait for it.
func envoyKilledInDrain(r *routers, p pod) {
	since := r.delete(p)
	r.kill(p, "envoy")
	r.ended(p, since, 0, routerDelay+10*time.Second, "envoy")
}

// Without the router nobody writes the marker: Envoy serves on, what doesn't need
// the router goes through, and the waiter's deadline ends it.
func routerKilledInDrain(r *routers, p pod) {
	since := r.delete(p)
	direct := r.begin(p, "/direct?ms=8000")
	r.kill(p, "atenet-router")
	if a := <-direct; !a.fine() {
		r.Errorf("a request that needs no router: %+v", a)
	}
	r.ended(p, since, routerDeadline-time.Second, routerGrace*time.Second+10*time.Second, "router")
}

// ---- clients that follow the endpoints ----------------------------------------

// clients send requests to the endpoints that are ready, in turn, half of them on
// connections that they keep.
type clients struct {
	r         *routers
	quit      chan struct{}
	all       sync.WaitGroup
	mu        sync.Mutex
	endpoints []string
	next      int
	report    clientReport
}

type clientReport struct {
	done   int
	failed []string
	by     map[string]int // requests by endpoint
}

func (r *routers) follow() *clients {
	c := &clients{r: r, quit: make(chan struct{}), endpoints: r.endpoints(), report: clientReport{by: map[string]int{}}}
	c.every(500*time.Millisecond, c.refresh)
	for i := range 8 {
		transport := &http.Transport{DisableKeepAlives: i%2 == 0}
		client := &http.Client{Timeout: 30 * time.Second, Transport: transport}
		c.every(100*time.Millisecond, func() { c.request(client) })
	}
	return c
}

// every runs f again and again until stop.
func (c *clients) every(pause time.Duration, f func()) {
	c.all.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-c.quit:
				return
			}
		}
	})
}

// refresh is as late as a proxy that looks twice a second.
func (c *clients) refresh() {
	if now := c.r.endpoints(); len(now) > 0 {
		c.mu.Lock()
		c.endpoints = now
		c.mu.Unlock()
	}
}

func (c *clients) request(client *http.Client) {
	c.mu.Lock()
	c.next++
	to := c.endpoints[c.next%len(c.endpoints)]
	c.mu.Unlock()
	began := time.Now()
	err := ask(client, "http://"+net.JoinHostPort(to, routerPort)+"/load?ms=30")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.report.done++
	c.report.by[to]++
	if err != nil {
		c.report.failed = append(c.report.failed, fmt.Sprintf("%s at %s: %v", to, began.Format("15:04:05.000"), err))
	}
}

func ask(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || string(body) != "worked") {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return err
}

func (c *clients) stop() clientReport {
	close(c.quit)
	c.all.Wait()
	return c.report
}
