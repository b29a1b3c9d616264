package real

import (
	"fmt"
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
		{"FewerListeners", func(p *plane) { p.set(p.healthy.Fewer(xds.Listeners, 2)) }, []string{fmt.Sprintf("dynamic listener %q", xds.Name(2))}, true},
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
			p.begin("--handoff-deadline", "6s", "--watch-config=false")
			for epoch, timeout := range []time.Duration{2 * time.Second, time.Second, 0} {
				p.refusesToCommit(epoch+1, bad, timeout)
			}
			p.end()
		})
	}
}

// refusesToCommit hands over to an epoch that the bad control plane must
// prevent, then to the same number with a healthy one.
func (p *plane) refusesToCommit(epoch int, bad badControlPlane, timeout time.Duration) {
	p.Helper()
	before := p.status()
	p.Bootstrap.InitialFetchTimeout = timeout
	p.write(fmt.Sprintf("v%d", epoch+1))
	bad.begin(p)
	p.hup()
	st := p.await(fmt.Sprintf("epoch %d to be taken back (timeout %v)", epoch, timeout), failed(epoch))
	p.Logf("timeout %v: %s", timeout, st.LastFailure.Error)
	live := "LIVE, but not verified"
	if timeout == 0 && !bad.always {
		live = "not LIVE"
	}
	if words := append([]string{live}, bad.says...); !failed(epoch, words...)(st) {
		p.Errorf("timeout %v: the failure does not say %q: %q", timeout, words, st.LastFailure.Error)
	}
	if st.LastFailure.Step != "handoff deadline" || p.run.Logged(bad.says[0]) == 0 && p.run.Logged(quoted(bad.says[0])) == 0 {
		p.Errorf("step %q; logged: %d", st.LastFailure.Step, p.run.Logged(bad.says[0]))
	}
	if st.Serving != epoch-1 || !st.Ready || st.Of(epoch-1).PID != before.Of(epoch-1).PID {
		p.Errorf("serving %d, ready %v; want %d as before", st.Serving, st.Ready, epoch-1)
	}
	p.recover()
	p.hup()
	p.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
}

func quoted(words string) string { return fmt.Sprintf("%q", words)[1 : len(fmt.Sprintf("%q", words))-1] }
