package router

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/upstream"
	"aether.internal/tools/envoy/fetch"
)

// patience bounds every wait: order and outcome are judged here, never time.
const patience = 90 * time.Second

// pod is a router and an Envoy beside it, and a kubelet that ends them.
type pod struct {
	*testing.T
	dir      string
	worker   string // host:port of the pool's worker
	upstream string // the load's
	tcp      string // host:port of the cluster that TCP goes to
	slots    int
	park     time.Duration
	queue    int
	idle     time.Duration // idle_timeout of the HTTP listener; 0: Envoy's
	grace    time.Duration

	ports       bootstrap.Options // of the listeners
	admin       string
	healthPort  int
	marker      string
	args        []string
	router      *proc
	envoy       *proc
	waiter      *proc
	neverUp     bool // Envoy hasn't even begun when its SIGTERM comes
	deleted     time.Time
	killed      atomic.Bool // by the kubelet, when the grace period was over
	certificate bootstrap.Certificate
}

var baseIDs atomic.Uint32

// newPod starts nothing yet. Its worker and its TCP cluster are the load's upstream.
func newPod(t *testing.T) *pod {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real Envoy")
	}
	dir, err := os.MkdirTemp("", "ar") // short: sockets lie in it
	check(t, err)
	behind, err := upstream.Start()
	check(t, err)
	t.Cleanup(func() {
		behind.Close()
		os.RemoveAll(dir)
	})
	ports, err := bootstrap.FreePorts(5)
	check(t, err)
	p := &pod{T: t, dir: dir, worker: behind.HTTP, upstream: behind.HTTP, tcp: behind.TCP, slots: 10000, queue: 10000, park: time.Minute, grace: time.Minute, healthPort: ports[4]}
	p.certificate, err = bootstrap.NewCertificate(dir)
	check(t, err)
	p.ports = bootstrap.Options{HTTP: ports[0], HTTPS: ports[1], TCP: ports[2], TLS: ports[3], Certificate: p.certificate}
	p.marker = filepath.Join(dir, "run", "drain-complete")
	p.admin = "unix:" + filepath.Join(dir, "admin")
	check(t, os.Mkdir(filepath.Dir(p.marker), 0o755))
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (p *pod) write() {
	p.Helper()
	text := fmt.Sprintf(`
listeners:
- {name: http, address: "127.0.0.1:%d", routes: [{pool: workers}], idle_timeout: %[12]v}
- {name: https, address: "127.0.0.1:%[2]d", routes: [{pool: workers}], tls: {certificate: %[3]q, key: %[4]q}}
- {name: tcp, address: "127.0.0.1:%[5]d", tcp: raw}
- {name: tls, address: "127.0.0.1:%[6]d", tcp: raw, tls: {certificate: %[3]q, key: %[4]q}}
pools:
- {name: workers, workers: [{address: %[7]q, slots: %[8]d}], queue: %[9]d, park: %[10]v}
clusters:
- {name: raw, endpoints: [%[11]q]}
`, p.ports.HTTP, p.ports.HTTPS, p.certificate.CertPath, p.certificate.KeyPath, p.ports.TCP, p.ports.TLS, p.worker, p.slots, p.queue, p.park, p.tcp, p.idle)
	path := filepath.Join(p.dir, "router.yaml")
	check(p.T, os.WriteFile(path+".new", []byte(text), 0o600))
	check(p.T, os.Rename(path+".new", path))
}

func (p *pod) addresses() []string {
	return []string{"--admin-address", p.admin, "--xds-address", "unix:" + filepath.Join(p.dir, "xds"), "--ext-proc-address", "unix:" + filepath.Join(p.dir, "proc")}
}

// start starts both containers and waits until the pod is ready.
func (p *pod) start(args ...string) {
	p.Helper()
	p.startRouter(args...)
	p.startEnvoy()
	p.until("the pod to be ready", func() bool { return p.status("/readyz") == http.StatusOK })
}

// startRouter begins with a short delay; later flags win.
func (p *pod) startRouter(args ...string) {
	p.Helper()
	p.write()
	p.args = append([]string{routerPath, "--config", filepath.Join(p.dir, "router.yaml"),
		"--health-address", "127.0.0.1:" + strconv.Itoa(p.healthPort), "--marker", p.marker,
		"--grace-period", p.grace.String(), "--drain-delay", "1s"}, p.addresses()...)
	p.args = append(p.args, args...)
	p.router = start(p.T, "router", p.args...)
	p.until("the router to be up", func() bool { return p.status("/healthz") == http.StatusOK })
}

// restartRouter is what the kubelet does when the container alone has ended.
func (p *pod) restartRouter() {
	p.Helper()
	<-p.router.done
	p.router = start(p.T, "router again", p.args...)
	p.until("the router to be up again", func() bool { return p.status("/healthz") == http.StatusOK })
}

func (p *pod) startEnvoy() {
	p.Helper()
	path, err := fetch.Path(p.Context(), "")
	check(p.T, err)
	out, err := exec.CommandContext(p.Context(), routerPath, append([]string{"bootstrap"}, p.addresses()...)...).Output()
	check(p.T, err)
	config := filepath.Join(p.dir, "envoy.yaml")
	check(p.T, os.WriteFile(config, out, 0o600))
	id := 7_000_000 + uint32(os.Getpid())%20_000*1_000 + baseIDs.Add(1)
	p.envoy = start(p.T, "envoy", path, "-c", config, "--base-id", strconv.Itoa(int(id)), "--concurrency", "2", "-l", "warn", "--drain-time-s", "5")
	p.Cleanup(func() { os.Remove(fmt.Sprintf("/dev/shm/envoy_shared_memory_%d0", id)) })
}

// status asks the router's health server, 0 when it doesn't answer.
func (p *pod) status(path string) int {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + strconv.Itoa(p.healthPort) + path)
	if err != nil {
		return 0
	}
	answer.Body.Close()
	return answer.StatusCode
}

func (p *pod) until(what string, done func() bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// delete is what the kubelet does: a SIGTERM to the router, the hook in Envoy's
// container, and SIGTERM to Envoy after the hook; when the grace period is over
// it kills.
func (p *pod) delete() {
	p.Helper()
	p.deleted = time.Now()
	p.waiter = start(p.T, "waiter", waiterPath, "--deadline", (p.grace * 11 / 12).String(), p.marker)
	p.router.signal(syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(context.Background(), p.grace)
	over := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(over)
		defer cancel()
		p.kubelet(ctx)
	}()
	p.Cleanup(func() { cancel(); <-over })
}

func (p *pod) kubelet(ctx context.Context) {
	select {
	case <-p.waiter.done:
		p.envoy.signal(syscall.SIGTERM)
	case <-ctx.Done():
	}
	for _, c := range []*proc{p.envoy, p.router} {
		select {
		case <-c.done:
		case <-ctx.Done():
			p.killed.Store(ctx.Err() == context.DeadlineExceeded)
			c.signal(syscall.SIGKILL)
		}
	}
}

// gone waits for the pod's end, and returns how long that took.
func (p *pod) gone() time.Duration {
	p.Helper()
	last := p.deleted
	for _, c := range []*proc{p.router, p.waiter, p.envoy} {
		p.until(c.name+" to end", c.isOver)
		if c.ended.After(last) {
			last = c.ended
		}
	}
	return last.Sub(p.deleted).Round(time.Millisecond)
}

// wentWell wants everybody to have ended in good order.
func (p *pod) wentWell() {
	p.Helper()
	if p.killed.Load() {
		p.Error("the kubelet had to kill")
	}
	all := []*proc{p.router, p.waiter}
	if !p.neverUp {
		all = append(all, p.envoy)
	}
	for _, c := range all {
		if code := c.code(); code != 0 {
			p.Errorf("%s: exit code %d", c.name, code)
		}
	}
}

func (p *pod) target() load.Target { return p.ports.Target() }

// stats of the pool, as /statusz tells them.
type stats struct{ Workers, Slots, Busy, Parked int }

func (p *pod) stats() stats {
	p.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get("http://127.0.0.1:" + strconv.Itoa(p.healthPort) + "/statusz")
	check(p.T, err)
	defer answer.Body.Close()
	var st struct{ Pools map[string]stats }
	check(p.T, json.NewDecoder(answer.Body).Decode(&st))
	return st.Pools["workers"]
}
