package real

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"aether.internal/test/node"
	"aether.internal/test/xds"
)

// Rule 2 and fact 20: LIVE does not mean configured. Whatever the control plane
// does and however long Envoy waits for it, nothing is committed that lacks
// something, and the node answers throughout.

// Each bad control plane, and what the log and status must say. never is for
// initial_fetch_timeout 0s: is the newcomer LIVE at all?
func badControlPlanes() []badControlPlane {
	listener, cluster := fmt.Sprintf("dynamic listener %q", xds.Name(0)), fmt.Sprintf("dynamic cluster %q", xds.Name(0))
	return []badControlPlane{
		{"Dead", func(p *plane) { p.control.Down() }, []string{"control plane is not connected", listener, cluster}, false},
		{"Slow", func(p *plane) { p.set(xds.State{Resources: p.healthy.Resources, Delay: time.Minute}) }, []string{listener, cluster}, false},
		{"Silent", func(p *plane) { p.set(p.silent(xds.Listeners, xds.Clusters)) }, []string{listener, cluster}, false},
		{"SilentForListeners", func(p *plane) { p.set(p.silent(xds.Listeners)) }, []string{listener}, false},
		{"RefusedListeners", func(p *plane) { p.set(p.healthy.Broken(xds.Listeners)) }, []string{listener, "refused by Envoy", "no.such.filter"}, true},
		{"RefusedClusters", func(p *plane) { p.set(p.healthy.Broken(xds.Clusters)) }, []string{listener, cluster}, true},
		{"FewerListeners", func(p *plane) { p.set(p.fewer()) }, []string{fmt.Sprintf("dynamic listener %q", xds.Name(2))}, true},
	}
}

type badControlPlane struct {
	name   string
	begin  func(*plane)
	says   []string
	always bool // LIVE even with initial_fetch_timeout 0s
}

func (p *plane) set(st xds.State) { p.control.Set(st) }

func (p *plane) silent(types ...string) xds.State {
	return xds.State{Resources: p.healthy.Resources, Silent: xds.SilentFor(types...)}
}

// fewer has no third listener, for newcomers: the serving epoch would obey as
// well, and then nothing would be missing.
func (p *plane) fewer() xds.State {
	st := p.healthy.Fewer(xds.Listeners, 2)
	st.NewStreamsOnly = true
	return st
}

// recover makes the control plane healthy again.
func (p *plane) recover() {
	p.Helper()
	p.set(p.healthy)
	p.control.Down()
	if err := p.control.Up(); err != nil {
		p.Fatal(err)
	}
}

func TestRule2AndFact20NothingIsCommittedThatIsNotConfigured(t *testing.T) {
	for _, bad := range badControlPlanes() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, 2*time.Second)
			p.begin("--handoff-deadline", "5s", "--watch-config=false")
			serving := p.status()
			for i, timeout := range []time.Duration{1500 * time.Millisecond, time.Second, 0} {
				p.Bootstrap.InitialFetchTimeout = timeout
				p.write(fmt.Sprintf("v%d", i+2))
				bad.begin(p)
				p.refusesToCommit(bad, serving)
			}
			p.recover()
			p.hup()
			p.await("epoch 1 to serve", node.Serves(1)) // no number was used up
			p.end()
		})
	}
}

// refusesToCommit asks for a handoff, and judges what is said and what serves.
func (p *plane) refusesToCommit(bad badControlPlane, before node.Status) {
	p.Helper()
	timeout := p.Bootstrap.InitialFetchTimeout
	words := append([]string{"handoff deadline", "missing"}, bad.says...)
	if timeout == 0 && !bad.always {
		words = append(words, "not LIVE") // and it never would be
	}
	code, out := p.proxyctl("reload", "--wait")
	if code == 0 || !containsAll(out, words) {
		p.Errorf("timeout %v: want a failure that says %q, got exit code %d: %s", timeout, words, code, out)
	}
	p.until(fmt.Sprintf("the log to say %q", words), func() bool {
		return slices.ContainsFunc(p.run.Lines(), func(l node.Line) bool {
			return l.Message == "newcomer is taken back" && containsAll(strings.ReplaceAll(l.Raw, `\"`, `"`), words)
		})
	})
	st := p.status()
	if st.Serving != 0 || !st.Ready || st.Of(0).PID != before.Of(0).PID || st.LastFailure == nil || st.LastFailure.Epoch != 1 {
		p.Errorf("timeout %v: want epoch 0 to serve as before: %+v", timeout, st)
	}
	p.marker("after a take-back", true)
}

func containsAll(text string, words []string) bool {
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

func TestRule2ASlowControlPlaneIsWaitedFor(t *testing.T) {
	for name, timeout := range map[string]time.Duration{
		"EnvoyWaits": 20 * time.Second, "EnvoyWaitsForEver": 0, "EnvoyIsLiveBefore": 300 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, timeout)
			p.begin("--handoff-deadline", "1m")
			p.set(xds.State{Resources: p.healthy.Resources, Delay: time.Second})
			p.write("v2")
			p.await("epoch 1 to serve", node.Serves(1))
			if n := p.run.Logged("waiting for the newcomer to be complete"); (n > 0) != (timeout == 300*time.Millisecond) {
				t.Errorf("LIVE without everything: %d lines", n)
			}
			p.end()
		})
	}
}

func TestRule2ForceCommitsALiveNewcomerWithFewerAndSaysSo(t *testing.T) {
	t.Parallel()
	p := newPlane(t, 2*time.Second)
	p.begin("--handoff-deadline", "1m", "--watch-config=false")
	p.judge(p.dynamic[2].Stop()) // its listener will be gone
	p.dynamic = p.dynamic[:2]
	p.set(p.fewer())
	code, out := p.proxyctl("reload", "--wait", "--force")
	if code != 0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	p.await("epoch 1 to serve", node.Serves(1))
	p.logsOnce("force: committed although something is missing")
	p.logs(`\"dynamic-2\"`)
	p.end()
}
