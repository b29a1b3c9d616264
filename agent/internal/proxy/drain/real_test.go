package drain

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/upstream"
	"aether.internal/tools/envoy/fetch"
)

// What a real Envoy counts, and how it drains.

var baseIDs atomic.Uint32

// realPod is an Envoy with an HTTP and a TCP listener in front of an upstream.
type realPod struct {
	*testing.T
	bootstrap.Options
	dir    string
	binary *envoy.Binary
	baseID uint32
	admin  *envoy.Admin
}

func newRealPod(t *testing.T) *realPod {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real Envoy")
	}
	path, err := fetch.Path(t.Context(), "")
	check(t, err)
	binary, err := envoy.OpenBinary(path)
	check(t, err)
	behind, err := upstream.Start()
	check(t, err)
	ports, err := bootstrap.FreePorts(2)
	check(t, err)
	dir, err := os.MkdirTemp("", "ad") // short: sockets lie in it
	check(t, err)
	p := &realPod{T: t, dir: dir, binary: binary, baseID: 5_000_000 + uint32(os.Getpid())%20_000*10_000 + baseIDs.Add(1)}
	p.Options = bootstrap.Options{
		Admin: "unix:" + filepath.Join(dir, "admin"), HTTP: ports[0], TCP: ports[1],
		UpstreamHTTP: behind.HTTP, UpstreamTCP: behind.TCP,
	}
	p.admin = adminAt(t, p.Admin)
	t.Cleanup(func() {
		binary.Close()
		behind.Close()
		envoy.RemoveSegment(p.baseID)
		os.RemoveAll(dir)
	})
	return p
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts an epoch and waits until it serves.
func (p *realPod) start(epoch int) *process.Process {
	p.Helper()
	text, err := p.YAML()
	check(p.T, err)
	config := filepath.Join(p.dir, "envoy.yaml")
	check(p.T, os.WriteFile(config, text, 0o600))
	launch := envoy.Launch{
		BaseID: p.baseID, Epoch: epoch, ConfigPath: config, SocketPath: filepath.Join(p.dir, "hr"),
		Concurrency: 2, DrainTime: time.Second, ParentShutdownTime: time.Minute, Extra: []string{"-l", "error"},
	}
	proc, err := process.Start(process.Spec{Path: p.binary.Path, Exe: p.binary.File, Args: launch.Args(), Stdout: os.Stderr, Stderr: os.Stderr})
	check(p.T, err)
	p.Cleanup(func() { _ = proc.Signal(syscall.SIGKILL); proc.Wait() })
	p.until(fmt.Sprintf("epoch %d LIVE", epoch), func() bool {
		info, err := p.admin.ServerInfo(p.Context())
		return err == nil && info.Epoch == epoch && info.State == "LIVE"
	})
	return proc
}

func (p *realPod) until(what string, done func() bool) {
	p.Helper()
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("not within 30s: %s", what)
		}
	}
}

// hold opens a connection of the TCP listener and proves that it flows.
func (p *realPod) hold() net.Conn {
	p.Helper()
	c, err := net.Dial("tcp", p.Target().TCP)
	check(p.T, err)
	p.Cleanup(func() { c.Close() })
	check(p.T, c.SetDeadline(time.Now().Add(30*time.Second)))
	p.flows(c)
	return c
}

func (p *realPod) flows(c net.Conn) {
	p.Helper()
	_, err := c.Write([]byte("x"))
	check(p.T, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	check(p.T, err)
}

// keepAlive makes one request on a connection that stays open.
func (p *realPod) keepAlive() *http.Client {
	p.Helper()
	transport := &http.Transport{MaxConnsPerHost: 1}
	p.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport, Timeout: 20 * time.Second}
	p.get(client)
	return client
}

func (p *realPod) get(client *http.Client) *http.Response {
	p.Helper()
	answer, err := client.Get("http://" + p.Target().HTTP + "/hello")
	check(p.T, err)
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	check(p.T, err)
	return answer
}

func (p *realPod) counts(e *Envoy, want int) {
	p.Helper()
	var n int
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n, err = e.Connections(p.Context()); err == nil && n == want {
			return
		}
	}
	p.Fatalf("%d, %v; want %d", n, err, want)
}

func TestARealEnvoysConnections(t *testing.T) {
	t.Parallel()
	p := newRealPod(t)
	p.start(0)
	all := NewEnvoy(p.admin, Listeners{})
	raw := NewEnvoy(p.admin, patterns(t, `127\.0\.0\.1_`+strconv.Itoa(p.TCP), ""))
	web := NewEnvoy(p.admin, patterns(t, "", `.*_`+strconv.Itoa(p.TCP)))
	p.counts(all, 0)
	held, _ := p.hold(), p.hold()
	p.keepAlive()
	p.counts(all, 3)
	p.counts(raw, 2)
	p.counts(web, 1)
	held.Close()
	p.counts(all, 2)
}

// While a parent drains, its connections are ours as well.
func TestARealEnvoysParentIsCounted(t *testing.T) {
	t.Parallel()
	p := newRealPod(t)
	p.start(0)
	held := p.hold()
	p.start(1)
	e := NewEnvoy(p.admin, Listeners{})
	for range 20 { // from its first moment on: an error, or at least one
		if n, err := e.Connections(t.Context()); err == nil && n == 0 {
			t.Fatal("the parent's connection is not counted")
		}
	}
	p.counts(e, 1)
	p.flows(held)
	held.Close()
	p.counts(e, 0)
}

// config drains p in short times.
func (p *realPod) config(t Times) Config {
	marker := NewMarker(filepath.Join(p.dir, "drain-complete"))
	_, err := marker.Clear()
	check(p.T, err)
	return Config{
		Times: t, Envoy: NewEnvoy(p.admin, Listeners{}), EnvoySeen: true, WasReady: true,
		Mark: marker.Write, Log: slog.New(slog.NewTextHandler(p.Output(), nil)),
	}
}

func (p *realPod) marked() bool {
	_, err := os.Stat(filepath.Join(p.dir, "drain-complete"))
	return err == nil
}

// run drains in the background.
func (p *realPod) run(ctx context.Context, cfg Config) (draining <-chan struct{}, out <-chan Outcome) {
	began, over := make(chan struct{}), make(chan Outcome, 1)
	cfg.Observe = func(st Status) {
		if st.Phase == Draining {
			select {
			case <-began:
			default:
				close(began)
			}
		}
	}
	go func() { over <- Run(ctx, cfg) }() // joined by who reads over
	return began, over
}

func TestARealDrainEndsWithTheLastConnection(t *testing.T) {
	t.Parallel()
	p := newRealPod(t)
	p.start(0)
	raw, client := p.hold(), p.keepAlive()
	draining, out := p.run(t.Context(), p.config(Times{Grace: 2 * time.Minute, Delay: 100 * time.Millisecond, Window: time.Minute}))
	<-draining
	p.until("Envoy to say that it drains", func() bool {
		ready, err := NewEnvoy(p.admin, Listeners{}).Ready(t.Context())
		return err == nil && !ready
	})
	if answer := p.get(client); !answer.Close { // and it's told to go
		t.Error("a kept connection is kept")
	}
	p.get(http.DefaultClient) // who hasn't heard is still served
	http.DefaultClient.CloseIdleConnections()
	p.flows(raw)
	if p.marked() {
		t.Error("marked while there is a connection")
	}
	raw.Close()
	if got := <-out; got != (Outcome{Envoy: Idle}) || !p.marked() {
		t.Errorf("%+v", got)
	}
}

func TestARealDrainOfAStoppedEnvoyEndsAtItsWindow(t *testing.T) {
	t.Parallel()
	p := newRealPod(t)
	proc := p.start(0)
	check(t, proc.Signal(syscall.SIGSTOP))
	_, out := p.run(t.Context(), p.config(Times{Grace: time.Minute, Window: 3 * time.Second}))
	if got := <-out; got.Envoy != Window || got.Left != unknown || !p.marked() {
		t.Errorf("%+v", got)
	}
}

func TestARealDrainOfADeadEnvoyEndsSoon(t *testing.T) {
	t.Parallel()
	p := newRealPod(t)
	proc := p.start(0)
	p.hold()
	draining, out := p.run(t.Context(), p.config(Times{Grace: 2 * time.Minute, Window: time.Minute}))
	<-draining
	check(t, proc.Signal(syscall.SIGKILL))
	began := time.Now()
	if got := <-out; got.Envoy != Gone || !p.marked() {
		t.Errorf("%+v", got)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("after %v", took)
	}
}

// What a coordinator that died half way leaves can be taken back but for one
// thing: Envoy closes each connection after its answer until it is restarted.
func TestARealDrainIsUndone(t *testing.T) {
	t.Parallel()
	p := newRealPod(t)
	p.start(0)
	e := NewEnvoy(p.admin, Listeners{})
	if undone, err := e.Undo(t.Context()); undone || err != nil {
		t.Errorf("of a healthy one: %t, %v", undone, err)
	}
	check(t, e.Drain(t.Context()))
	if undone, err := e.Undo(t.Context()); !undone || err != nil {
		t.Fatalf("%t, %v", undone, err)
	}
	if ready, err := e.Ready(t.Context()); !ready || err != nil {
		t.Errorf("ready %t, %v", ready, err)
	}
	client := p.keepAlive()
	var last *http.Response
	p.until("connections to be closed with their answers", func() bool {
		last = p.get(client)
		return last.Close
	})
	if last.StatusCode != http.StatusOK {
		t.Error(last.Status)
	}
}

// What the polling costs the Envoy that is polled, at most four times a second.
func TestWhatARealCountCosts(t *testing.T) {
	p := newRealPod(t)
	proc := p.start(0)
	p.hold()
	e := NewEnvoy(p.admin, Listeners{})
	const counts = 200
	before := cpu(t, proc.Pid())
	for range counts {
		_, err := e.Connections(t.Context())
		check(t, err)
	}
	each := (cpu(t, proc.Pid()) - before) / counts
	t.Logf("%v of Envoy's CPU for each count", each)
	if each > 50*time.Millisecond {
		t.Errorf("%v of Envoy's CPU for each count", each)
	}
}

// cpu is what a process has used; the kernel counts in hundredths of a second.
func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(t, err)
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	check(t, err)
	system, err := strconv.Atoi(fields[12])
	check(t, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}
