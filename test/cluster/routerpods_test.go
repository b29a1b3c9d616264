package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	routerGrace    = 30 // seconds: delay 7, waiter's deadline 28
	routerDelay    = 7 * time.Second
	routerDeadline = 28 * time.Second
	routerPort     = "8080"
	healthPort     = "8081"
)

// routers are the pods of an installed charts/atenet-router, with workers on the
// node. Pods have networks of their own.
type routers struct {
	*release
	workers string // host:port, answers after ?ms=
}

func newRouters(t *testing.T, name string, replicas int, set ...string) *routers {
	t.Helper()
	if the == nil {
		t.Skip("the images are built by Bazel: bazel test //test/cluster:cluster_test")
	}
	r := &routers{release: &release{T: t, cluster: the, ctx: t.Context(), namespace: namespaces + name}}
	r.workers = r.startWorkers()
	r.open()
	r.helmed(append([]string{"install", chartName, filepath.Join(repository, "charts/atenet-router"), "--values", r.values(replicas)}, set...)...)
	r.settled(replicas)
	return r
}

// values are written to a file. The pool "many" has room for all, "one" for one
// request at a time.
func (r *routers) values(replicas int) string {
	r.Helper()
	small := map[string]any{"requests": map[string]string{"cpu": "5m"}}
	data, err := json.Marshal(map[string]any{
		"replicaCount": replicas, "terminationGracePeriodSeconds": routerGrace, "initResources": small, "resources": small,
		"envoy": map[string]any{"resources": small, "concurrency": 1, "logLevel": "warn"},
		"config": map[string]any{
			"listeners": []any{map[string]any{
				"name": "web", "address": "0.0.0.0:" + routerPort, "idle_timeout": "2s",
				"routes": []any{
					map[string]any{"prefix": "/one", "pool": "one"},
					map[string]any{"prefix": "/direct", "cluster": "direct"},
					map[string]any{"pool": "many"},
				},
			}},
			"pools": []any{
				map[string]any{"name": "one", "workers": []any{map[string]any{"address": r.workers, "slots": 1}}, "queue": 10, "park": "60s"},
				map[string]any{"name": "many", "workers": []any{map[string]any{"address": r.workers, "slots": 100}}, "queue": 100, "park": "30s"},
			},
			"clusters": []any{map[string]any{"name": "direct", "endpoints": []string{r.workers}}},
		},
	})
	r.must(err)
	path := filepath.Join(r.TempDir(), "values.json")
	r.must(os.WriteFile(path, data, 0o600))
	return path
}

// startWorkers serves on the node's own address, which pods reach.
func (r *routers) startWorkers() string {
	r.Helper()
	var nodes struct {
		Items []struct {
			Status struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	r.must(r.api.call(r.ctx, http.MethodGet, "/api/v1/nodes", nil, &nodes))
	address := ""
	for _, a := range nodes.Items[0].Status.Addresses {
		if a.Type == "InternalIP" {
			address = a.Address
		}
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	r.must(err)
	s := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(work)}
	go s.Serve(l) // ends with Close
	r.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// work answers after ?ms= milliseconds, or when the client has gone.
func work(w http.ResponseWriter, req *http.Request) {
	ms, _ := strconv.Atoi(req.URL.Query().Get("ms")) // none: at once
	select {
	case <-time.After(time.Duration(ms) * time.Millisecond):
		fmt.Fprint(w, "worked")
	case <-req.Context().Done():
	}
}

// settled waits until just these many pods are there, ready, and in the endpoints.
func (r *routers) settled(replicas int) []pod {
	r.Helper()
	r.until("the pods to be ready, and no others there", func() bool {
		pods := r.pods.pods()
		for _, p := range pods {
			if !p.ready() || p.deleted() {
				return false
			}
		}
		return len(pods) == replicas && len(r.endpoints()) == replicas
	})
	return r.pods.pods()
}

// endpoints are the addresses that the Service's EndpointSlices call ready.
func (r *routers) endpoints() []string {
	var list struct {
		Items []struct {
			Endpoints []struct {
				Addresses  []string
				Conditions struct{ Ready *bool }
			}
		}
	}
	path := "/apis/discovery.k8s.io/v1/namespaces/" + r.namespace + "/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D" + chartName + "-atenet-router"
	if r.api.call(r.ctx, http.MethodGet, path, nil, &list) != nil {
		return nil
	}
	var ready []string
	for _, slice := range list.Items {
		for _, e := range slice.Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready = append(ready, e.Addresses...)
			}
		}
	}
	return ready
}

// ask makes one request of a pod on a connection of its own.
func (r *routers) ask(p pod, port, path string) (int, string, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + net.JoinHostPort(p.Status.PodIP, port) + path)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// answer is what became of a request.
type answer struct {
	code int
	body string
	err  error
}

func (a answer) fine() bool { return a.err == nil && a.code == http.StatusOK && a.body == "worked" }

// begin asks and doesn't wait for the answer.
func (r *routers) begin(p pod, path string) <-chan answer {
	c := make(chan answer, 1)
	go func() { // ends with the request
		code, body, err := r.ask(p, routerPort, path)
		c <- answer{code, body, err}
	}()
	return c
}

// pool is what a pod's router says of one of its pools.
type pool struct{ Busy, Parked int }

func (r *routers) pool(p pod, name string) pool {
	var st struct{ Pools map[string]pool }
	_, body, err := r.ask(p, healthPort, "/statusz")
	if err != nil || json.Unmarshal([]byte(body), &st) != nil {
		return pool{-1, -1}
	}
	return st.Pools[name]
}

// parked waits until the pool "one" of a pod has so many requests.
func (r *routers) parked(p pod, busy, parked int) {
	r.Helper()
	r.until(fmt.Sprintf("%d busy and %d parked", busy, parked), func() bool { return r.pool(p, "one") == pool{busy, parked} })
}

// delete begins a pod's end, and waits until its drain has begun.
func (r *routers) delete(p pod) (at time.Time) {
	r.Helper()
	at = time.Now()
	r.kube("delete", "pod", p.Metadata.Name, "-n", r.namespace, "--wait=false")
	r.until("the drain to begin", func() bool {
		code, _, err := r.ask(p, healthPort, "/readyz")
		return err != nil || code == http.StatusServiceUnavailable
	})
	return at
}

// process finds one of a pod's by its name.
func (r *routers) process(p pod, name string) int {
	r.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/comm")
	r.must(err)
	for _, path := range all {
		comm, _ := os.ReadFile(path) // of a process that has ended: nothing
		cgroup, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		if strings.TrimSpace(string(comm)) == name && bytes.Contains(cgroup, []byte(p.Metadata.UID)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			r.must(err)
			return pid
		}
	}
	r.Fatalf("no process %s in %s", name, p.Metadata.Name)
	return 0
}

func (r *routers) kill(p pod, name string) {
	r.Helper()
	r.must(syscall.Kill(r.process(p, name), syscall.SIGKILL))
}

// ended waits for a pod's end and judges how long it took since its deletion. A
// container that was killed may have any exit code.
func (r *routers) ended(p pod, since time.Time, atLeast, atMost time.Duration, killed string) {
	r.Helper()
	r.exited(p, killed)
	took := time.Since(since)
	r.Logf("%v from deletion to end", took.Round(100*time.Millisecond))
	if took < atLeast || took > atMost {
		r.Errorf("the pod took %v to end, want %v to %v", took, atLeast, atMost)
	}
}

// exited waits for a pod's end: each container by itself, with code 0.
func (r *routers) exited(p pod, killed string) {
	r.Helper()
	for _, c := range r.gone(p).Status.ContainerStatuses {
		if end := c.State.Terminated; end == nil || end.ExitCode != 0 && c.Name != killed || c.RestartCount > 0 {
			r.Errorf("%s, container %s: %+v, %d restarts", p.Metadata.Name, c.Name, end, c.RestartCount)
		}
	}
}
