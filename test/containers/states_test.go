package containers

import (
	"strings"
	"testing"

	observe "aether.internal/test/node"
	"aether.internal/test/xds"
)

// What an operator sees in each state of docs/pods.md: the examples there are
// from this test's output.
func TestProxyctlStatusTellsEachState(t *testing.T) {
	n := newNode(t)
	silent := xds.State{Silent: xds.SilentFor(xds.Listeners, xds.Clusters)} // holds up each new Envoy
	control := n.plane(xds.State{})
	a := n.pod("a")
	a.serves(0, "--successor-wait", "30s")
	a.shows("serving", "serving")
	n.hold("old", 2)

	control.Set(silent)
	b := n.pod("b")
	b.launch()
	a.shows("contested", "contested")
	b.shows("successor", "successor")
	control.Set(xds.State{})
	b.await("epoch 1 to serve", observe.Serves(1))
	a.shows("superseded", "superseded")
	b.shows("draining, the old pod's epoch beside it", "draining")

	control.Set(silent)
	b.signal("KILL")
	b.exits(137)
	a.shows("orphaned", "orphaned")
	control.Set(xds.State{})
	a.await("the old pod to serve again", observe.Serves(1))
	n.letGo("old", 0)
	a.await("the old pod's second epoch alone", observe.Alone(1))

	a.signal("TERM")
	a.shows("waiting for a successor", "waiting")
	c := n.pod("c")
	c.serves(2)
	a.exits(0)
	c.stop()
}

// shows waits until the command says a state, and logs all that it says.
func (p *pod) shows(what, state string) {
	p.Helper()
	var out string
	p.until("proxyctl status to say "+state, func() bool {
		_, out = p.exec(superPath, "proxyctl", "status")
		return strings.Contains(strings.SplitN(out, "\n", 2)[0], state)
	})
	p.Logf("%s:\n%s", what, out)
}
