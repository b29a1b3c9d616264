package load_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/upstream"
)

// The generator must call a real hot restart what it is: no failure, and both
// epochs seen by every kind that can see them.
//
// Not parallel, as no test here with an Envoy: two cores are few for it alone.
func TestARealHotRestartHasNoFailures(t *testing.T) {
	node := newNode(t)
	node.start(0, "v1")
	plan := load.DefaultPlan(node.options.Target())
	plan.StreamDuration = time.Second
	plan.Timeout = 20 * time.Second // the machine may be busy; what fails doesn't fail by time
	modest(plan)
	run := begin(t, plan)

	until(t, run, "v1 answers", answered("v1"))
	first := node.epochs[0]
	node.start(1, "v2")
	until(t, run, "v2 answers", answered("v2"))
	select {
	case <-first.ended:
	case <-time.After(30 * time.Second):
		t.Fatal("epoch 0 still runs long after its parent-shutdown-time")
	}
	report := run.Stop()

	if report.Failures() != 0 || report.Overruns() != 0 {
		t.Errorf("failures %d, overruns %d", report.Failures(), report.Overruns())
	}
	for _, k := range report.Kinds {
		if k.OK == 0 {
			t.Errorf("%s (tls %t): nothing succeeded", k.Kind, k.TLS)
		}
	}
	for _, k := range []string{load.KeepAlive, load.H2, load.GRPC} {
		if report.Kind(k, true).ToldToClose+report.Kind(k, false).ToldToClose == 0 {
			t.Errorf("%s: no connection was told to close, with an epoch drained", k)
		}
	}
	t.Log("\n" + report.Table())
}

// An epoch that is killed under load is the opposite: everything that was
// open is cut, and nobody answers.
func TestAKilledEnvoyIsSeen(t *testing.T) {
	node := newNode(t)
	node.start(0, "v1")
	plan := load.DefaultPlan(node.options.Target())
	modest(plan)
	run := begin(t, plan)
	until(t, run, "streams are out", answered("v1"))
	node.epochs[0].kill()
	until(t, run, "refusals", func(r load.Report) bool {
		return r.Kind(load.New, false).Refused > 0 && r.Kind(load.New, true).Refused > 0
	})
	report := run.Stop()
	for _, kind := range []string{load.Stream, load.Upload, load.H2Stream, load.GRPC, load.TCPHold} {
		for _, tls := range []bool{false, true} {
			if k := report.Kind(kind, tls); k.Failed == 0 {
				t.Errorf("%s (tls %t): no failure", kind, tls)
			}
		}
	}
	t.Log("\n" + report.Table())
}

func answered(epoch string) func(load.Report) bool {
	return func(r load.Report) bool {
		for _, k := range r.Kinds {
			if k.OK == 0 || k.Kind != load.TCP && k.Kind != load.TCPHold && k.Epochs[epoch] == 0 {
				return false
			}
		}
		return true
	}
}

// node is an Envoy by hand: one base-id, one bootstrap, several epochs.
type node struct {
	t       *testing.T
	dir     string
	baseID  int
	options bootstrap.Options
	epochs  []*epoch
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "load") // a socket path has 108 bytes: t.TempDir may not fit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	server, err := upstream.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	certificate, err := bootstrap.NewCertificate(dir)
	if err != nil {
		t.Fatal(err)
	}
	ports, err := bootstrap.FreePorts(4)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{t: t, dir: dir, baseID: freeBaseID(t), options: bootstrap.Options{
		Admin: "unix:" + filepath.Join(dir, "admin"),
		HTTP:  ports[0], HTTPS: ports[1], TCP: ports[2], TLS: ports[3],
		UpstreamHTTP: server.HTTP, UpstreamTCP: server.TCP, Certificate: certificate,
	}}
	t.Cleanup(func() { _ = os.Remove(fmt.Sprintf("/dev/shm/envoy_shared_memory_%d", 10*n.baseID)) })
	return n
}

// freeBaseID differs from those of other processes and of other tests.
func freeBaseID(t *testing.T) int {
	t.Helper()
	ports, err := bootstrap.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return 70_000_000 + os.Getpid()%1000*65536 + ports[0]
}

type epoch struct {
	command *exec.Cmd
	ended   chan struct{}
}

func (e *epoch) kill() { _ = e.command.Process.Kill(); <-e.ended }

// start forks epoch n and waits until it is LIVE.
func (n *node) start(number int, tag string) {
	n.t.Helper()
	n.options.EpochTag = tag
	yaml, err := n.options.YAML()
	if err != nil {
		n.t.Fatal(err)
	}
	config := filepath.Join(n.dir, tag+".yaml")
	if err := os.WriteFile(config, yaml, 0o600); err != nil {
		n.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(n.dir, tag+".log"))
	if err != nil {
		n.t.Fatal(err)
	}
	defer log.Close()
	e := &epoch{ended: make(chan struct{})}
	// The Go runtime keeps its threads, so Envoy's parent-death signal
	// (fact 3) doesn't fire while this test runs.
	e.command = exec.Command(envoyPath(n.t), "-c", config, "--base-id", strconv.Itoa(n.baseID),
		"--restart-epoch", strconv.Itoa(number), "--concurrency", "2", "-l", "warning",
		"--drain-time-s", "1", "--parent-shutdown-time-s", "5",
		"--socket-path", filepath.Join(n.dir, "hr"), "--socket-mode", "600")
	e.command.Stdout, e.command.Stderr = log, log
	if err := e.command.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.epochs = append(n.epochs, e)
	// Reaps the epoch; joined by the cleanup's kill.
	go func() { defer close(e.ended); _ = e.command.Wait() }()
	n.t.Cleanup(e.kill)
	n.t.Cleanup(func() { n.showLog(log.Name()) })
	n.waitLive(e, number)
}

func (n *node) showLog(path string) {
	if text, err := os.ReadFile(path); n.t.Failed() && err == nil {
		n.t.Logf("%s:\n%s", filepath.Base(path), text)
	}
}

func (n *node) waitLive(e *epoch, number int) {
	n.t.Helper()
	want := fmt.Sprintf(`"restart_epoch": %d,`, number)
	deadline := time.After(20 * time.Second)
	for {
		body, err := n.serverInfo()
		if err == nil && strings.Contains(body, want) && strings.Contains(body, `"state": "LIVE"`) {
			return
		}
		select {
		case <-e.ended:
			n.t.Fatalf("epoch %d ended before it was LIVE", number)
		case <-deadline:
			n.t.Fatalf("epoch %d isn't LIVE: %v %s", number, err, body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// serverInfo asks on a fresh connection: a draining epoch answers on old ones.
func (n *node) serverInfo() (string, error) {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", filepath.Join(n.dir, "admin"))
		},
	}}
	resp, err := client.Get("http://admin/server_info")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return string(body), err
}
