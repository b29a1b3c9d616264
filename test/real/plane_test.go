package real

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/node"
	"aether.internal/test/xds"
)

// plane is a stage whose Envoy gets listeners and clusters from a control
// plane as well, with load through those too.
type plane struct {
	*stage
	control *xds.Server
	healthy xds.State
	ports   []int
	dynamic []*load.Runner
}

const dynamicListeners = 3

// slowMachine is what an operation may take: a machine with too much to do
// harms nobody in the sense of these tests. What is cut or refused still shows.
const slowMachine = 30 * time.Second

// newPlane makes a node and a healthy control plane; nothing runs yet.
func newPlane(t *testing.T, fetchTimeout time.Duration) *plane {
	t.Helper()
	p := &plane{stage: newStage(t)}
	var err error
	if p.ports, err = bootstrap.FreePorts(dynamicListeners); err != nil {
		t.Fatal(err)
	}
	p.Bootstrap.XDS = filepath.Join(p.Dir, "xds.sock")
	p.Bootstrap.InitialFetchTimeout = fetchTimeout
	p.control = xds.New(p.Bootstrap.XDS)
	p.healthy = xds.Healthy(p.Upstream.HTTP, p.ports...)
	p.control.Set(p.healthy)
	if err := p.control.Up(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, r := range p.dynamic {
			r.Stop()
		}
		p.control.Close()
	})
	p.write("v1")
	return p
}

// begin starts the supervisor and the load, through static listeners and
// dynamic ones.
func (p *plane) begin(args ...string) {
	p.Helper()
	p.start(args...)
	p.loadWith(quiet(p.Target()))
	for _, port := range p.ports {
		at := load.Target{HTTP: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
		r, err := load.Start(p.ctx, load.Plan{Target: at, StreamDuration: 500 * time.Millisecond, Timeout: slowMachine, Kinds: []load.KindPlan{
			{Kind: load.New, Rate: 15}, {Kind: load.KeepAlive, Rate: 10, Connections: 2},
			{Kind: load.Stream, Rate: 2}, {Kind: load.H2, Rate: 5, Connections: 1},
		}}.ForThisMachine())
		if err != nil {
			p.Fatal(err)
		}
		p.dynamic = append(p.dynamic, r)
		p.until("an answer", func() bool { return r.Snapshot().OK() > 0 })
	}
}

// end stops all load, fails for any harm, and stops the supervisor.
func (p *plane) end() {
	p.Helper()
	for _, r := range p.dynamic {
		p.judge(r.Stop())
	}
	p.dynamic = nil
	p.unharmed()
	p.stop()
}

// quiet is every kind of operation at a third of the default rate, so that
// several tests at once don't measure each other.
func quiet(t load.Target) load.Plan {
	plan := brisk(t)
	for i := range plan.Kinds {
		plan.Kinds[i].Rate = max(plan.Kinds[i].Rate/3, 1)
	}
	return plan
}

// brisk is the default plan on one kept connection of each kind: a draining
// epoch can tell a connection to close only when it is used (fact 14), and the
// times of these tests are short.
func brisk(t load.Target) load.Plan {
	plan := load.DefaultPlan(t)
	plan.StreamDuration, plan.Timeout = 500*time.Millisecond, slowMachine
	for i := range plan.Kinds {
		plan.Kinds[i].Connections = 1
	}
	return plan.ForThisMachine()
}

// judge fails the test for anything in a report that was harmed.
func (s *stage) judge(report load.Report) {
	s.Helper()
	if report.OK() == 0 || report.Failures() > 0 {
		s.Errorf("the load was harmed: %d failures of %d\n%s", report.Failures(), report.Started(), report.Table())
		for _, e := range report.Errors {
			s.Logf("%s (tls %t) at %v, %s: %s", e.Kind, e.TLS, e.Offset, e.Heading, e.Message)
		}
	}
}

// failed wants a newcomer to have been taken back, and a failure that says
// all of the words.
func failed(epoch int, words ...string) func(node.Status) bool {
	return func(s node.Status) bool {
		f := s.LastFailure
		return f != nil && f.Epoch == epoch && s.Of(epoch) == nil && containsAll(f.Error, words)
	}
}

// admin asks the admin of whoever has it now, on a fresh connection.
func (s *stage) admin(path string) (string, error) {
	address := s.Bootstrap.Admin
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if socket, ok := strings.CutPrefix(address, "unix:"); ok {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	resp, err := client.Get("http://envoy" + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}
