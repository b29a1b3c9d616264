package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/upstream"
	"aether.internal/test/node"
)

// patience bounds every wait: generous, because order and outcome are judged here
// and never time.
const patience = 3 * time.Minute

// release is an installed charts/aether-proxy in a namespace of its own, and the
// upstream behind it. Its pods have the machine's network.
type release struct {
	*testing.T
	*cluster
	ctx       context.Context
	namespace string
	name      string // of the DaemonSet
	run       string // volume with the control socket
	boot      bootstrap.Options
	stats     string            // host:port of the stats listener
	set       map[string]string // values that were given, by path
	pods      *history
	gate      *gate
	dir       string // of the test's; in place, Envoy's binary is there
}

const (
	namespaces = "aether-test-" // what their names begin with
	chartName  = "proxy"        // of the release, and so of its DaemonSet
)

// Drained in two seconds, or rolls would take half a minute each. Everything that is
// only waited for in need is long enough for a busy machine: the limit for each kept
// connection of the load to be told to close, successor-wait for a pod to be started.
var brief = map[string]string{
	"terminationGracePeriodSeconds":              "40",
	"proxy.hotRestart.drainTimeSeconds":          "2",
	"proxy.hotRestart.parentShutdownTimeSeconds": "15",
	"proxy.hotRestart.successorWaitSeconds":      "20",
	"resources.requests.cpu":                     "10m",
	"initResources.requests.cpu":                 "10m",
	"agent.image.tag":                            "dev",
	"proxy.logLevel":                             "warn",
}

var (
	inPlace  = map[string]string{"proxy.hotRestart.enabled": "true"}
	crossPod = map[string]string{"proxy.hotRestart.enabled": "true", "proxy.hotRestart.crossPod": "true"}
	surging  = map[string]string{"proxy.hotRestart.enabled": "true", "proxy.hotRestart.crossPod": "true", "proxy.hotRestart.surge": "true"}
)

// newRelease installs the chart with these values and waits until it serves.
func newRelease(t *testing.T, name string, values ...map[string]string) *release {
	t.Helper()
	r := prepareRelease(t, name)
	r.serve(values...)
	return r
}

// serve installs the chart and waits until it serves.
func (r *release) serve(values ...map[string]string) {
	r.Helper()
	r.upgrade("v1", values...)
	r.rolled()
	r.until("an answer", func() bool { return r.tag() == "v1" })
}

// prepareRelease makes the namespace and all that is around the chart.
func prepareRelease(t *testing.T, name string) *release {
	t.Helper()
	if the == nil {
		t.Skip("the images are built by Bazel: bazel test //test/cluster:cluster_test")
	}
	up, err := upstream.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { up.Close() })
	ports, err := bootstrap.FreePorts(3)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{
		T: t, cluster: the, ctx: t.Context(), namespace: namespaces + name,
		name: chartName + "-aether-proxy", run: "run", set: maps.Clone(brief),
		boot:  bootstrap.Options{HTTP: ports[0], TCP: ports[1], UpstreamHTTP: up.HTTP, UpstreamTCP: up.TCP},
		stats: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[2])),
		gate:  newGate(t), dir: t.TempDir(),
	}
	r.set["stats.address"], r.set["stats.port"] = "127.0.0.1", strconv.Itoa(ports[2])
	r.open()
	return r
}

// open makes the namespace, and removes it at the end of the test.
func (r *release) open() {
	r.Helper()
	if *keep {
		r.remove()
	}
	r.kube("create", "namespace", r.namespace)
	ctx, stop := context.WithCancel(context.Background())
	r.pods = r.api.watch(ctx, r.namespace)
	r.Cleanup(func() {
		if r.Failed() {
			r.describe()
		}
		r.remove()
		stop()
	})
}

// remove ends the pods before their upstream, and what they leave on the node.
func (r *release) remove() {
	if *keep && r.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, args := range [][]string{ // nobody is served any more: no pod need wait for a successor
		{"daemonset", "--all", "--cascade=orphan"}, {"pod", "--all", "--grace-period=1"}, {"namespace", r.namespace},
	} {
		if _, err := r.kubectl(ctx, append([]string{"delete", "-n", r.namespace, "--ignore-not-found"}, args...)...); err != nil {
			r.Error(err)
		}
	}
	os.RemoveAll("/run/aether/" + r.namespace)
}

// upgrade is `helm upgrade --install` with the bootstrap tagged so, and more
// values. It doesn't wait for pods.
func (r *release) upgrade(tag string, values ...map[string]string) {
	r.Helper()
	for _, v := range values {
		maps.Copy(r.set, v)
	}
	r.upgradeWith(r.bootstrap(tag))
}

func (r *release) bootstrap(tag string) (content map[string]any) {
	r.Helper()
	r.boot.EpochTag = tag
	data, err := r.boot.YAML()
	r.must(err)
	r.must(yaml.Unmarshal(data, &content))
	content["stats_flush_interval"] = "1s" // what a handoff may count twice or not at all
	static := content["static_resources"].(map[string]any)
	static["clusters"] = append(static["clusters"].([]any), r.gate.cluster())
	return content
}

// upgradeWith takes any bootstrap.
func (r *release) upgradeWith(boot map[string]any) {
	r.Helper()
	data, err := json.Marshal(map[string]any{"bootstrap": boot})
	r.must(err)
	file := filepath.Join(r.dir, "values.json")
	r.must(os.WriteFile(file, data, 0o600))
	args := []string{"upgrade", "--install", chartName, filepath.Join(repository, "charts/aether-proxy"), "--values", file}
	for path, value := range r.set {
		args = append(args, "--set", path+"="+value)
	}
	r.helmed(args...)
}

// helmed runs helm in the release's namespace.
func (r *release) helmed(args ...string) {
	r.Helper()
	env := []string{"KUBECONFIG=" + filepath.Join(r.state, "admin.kubeconfig")}
	_, err := r.helm.Run(r.ctx, env, append(args, "--namespace", r.namespace)...)
	r.must(err)
}

func (r *release) kube(args ...string) string {
	r.Helper()
	out, err := r.kubectl(r.ctx, args...)
	r.must(err)
	return out
}

func (r *release) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// until polls, and fails the test in the end.
func (r *release) until(what string, holds func() bool) {
	r.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(patience); !holds(); {
		select {
		case <-tick.C:
		case <-end:
			r.Fatalf("waited %v in vain for %s", patience, what)
		case <-r.ctx.Done():
			r.Fatalf("waiting for %s: %v", what, context.Cause(r.ctx))
		}
	}
}

// ---- what is to be seen -------------------------------------------------------

func (r *release) daemonSet() (d daemonSet) {
	// No answer is an empty one: the server may be down on purpose.
	_ = r.api.call(r.ctx, http.MethodGet, "/apis/apps/v1/namespaces/"+r.namespace+"/daemonsets/"+r.name, nil, &d)
	return d
}

// rolled waits until the newest template's pod is ready and no other is left.
func (r *release) rolled() pod {
	r.Helper()
	r.until("the roll to end", func() bool {
		pods := r.pods.pods()
		return len(pods) == 1 && pods[0].ready() && !pods[0].deleted() && r.daemonSet().rolled()
	})
	return r.only()
}

// only is the one pod that there is.
func (r *release) only() pod {
	r.Helper()
	pods := r.pods.pods()
	if len(pods) != 1 {
		r.Fatalf("%d pods, want one: %+v", len(pods), pods)
	}
	return pods[0]
}

// afresh makes a connection for each request: a kept one stays with its epoch.
var afresh = http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// tag is the bootstrap that answers, "" if none does.
func (r *release) tag() string {
	resp, err := afresh.Get("http://" + r.boot.Target().HTTP + "/hello")
	if err != nil {
		return ""
	}
	resp.Body.Close()
	return resp.Header.Get("x-epoch")
}

// status asks a pod's supervisor, through its volume on the node.
func (r *release) status(p pod) (node.Status, error) {
	var st node.Status
	dir, err := os.Open(r.volume(p, r.run))
	if err != nil {
		return st, err
	}
	defer dir.Close()
	// The socket's whole path would be longer than a socket address may be.
	n := node.Node{Control: fmt.Sprintf("/proc/self/fd/%d/control.sock", dir.Fd())}
	return st, n.ControlCall(r.ctx, http.MethodGet, "/v1/status", &st)
}

// volume is where a pod's emptyDir is on the node.
func (r *release) volume(p pod, name string) string {
	return filepath.Join(r.state, "kubelet/pods", p.Metadata.UID, "volumes/kubernetes.io~empty-dir", name)
}

// await polls a pod's status until it is as wanted.
func (r *release) await(p pod, what string, want func(node.Status) bool) (st node.Status) {
	r.Helper()
	r.until(p.Metadata.Name+": "+what, func() bool {
		if _, gone := r.pods.last(p.Metadata.UID); gone {
			r.Fatalf("%s is gone while waiting for it %s", p.Metadata.Name, what)
		}
		var err error
		st, err = r.status(p)
		return err == nil && want(st)
	})
	return st
}

// gone waits for a pod's end and returns its last state.
func (r *release) gone(p pod) (last pod) {
	r.Helper()
	r.until(p.Metadata.Name+" to be gone", func() bool {
		var gone bool
		last, gone = r.pods.last(p.Metadata.UID)
		return gone
	})
	return last
}

// successor waits for a pod that isn't among those known.
func (r *release) successor(known ...pod) (next pod) {
	r.Helper()
	r.until("another pod", func() bool {
		for _, p := range r.pods.pods() {
			old := false
			for _, k := range known {
				old = old || k.Metadata.UID == p.Metadata.UID
			}
			if !old {
				next = p
				return true
			}
		}
		return false
	})
	return next
}

// describe prints all that may tell why a test failed.
func (r *release) describe() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, args := range [][]string{
		{"get", "pods", "-o", "wide"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "daemonset/" + r.name, "--all-containers", "--prefix", "--all-pods", "--tail=80"},
	} {
		out, err := r.kubectl(ctx, append(args, "-n", r.namespace)...)
		r.Logf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	for _, t := range r.pods.turned() {
		r.Logf("%s %s ready: %t", t.at.Format("15:04:05.000"), t.pod, t.ready)
	}
}
