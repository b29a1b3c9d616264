package router

import (
	"net/http"
	"os"
	"syscall"
	"testing"
)

// A SIGTERM and no waiter: the kubelet restarts this container, and the pod lives on.
func TestARestartOfTheRouterAloneDrainsNothing(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.start("--drain-delay", "1s")
	tcp := p.hold()
	idle := p.idleConnection(g)
	p.router.signal(syscall.SIGTERM)
	if code := p.router.code(); code != 0 || !p.router.said("only this container is stopping") {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat(p.marker); err == nil {
		t.Error("there is a marker")
	}
	p.flows(tcp)
	p.restartRouter()
	p.until("the pod to be ready again", func() bool { return p.status("/readyz") == http.StatusOK })
	p.flows(tcp)
	again := p.get(t.Context(), "/hold")
	g.let()
	if !again.ok() {
		t.Error(again)
	}
	idle.Close()
	tcp.Close()
	p.delete() // and this is the end
	t.Logf("gone after %v", p.gone())
	p.wentWell()
}

// The waiter's pod lives on after all, as when Envoy's container alone was restarted.
func TestADrainThatWasCutShortIsUndone(t *testing.T) {
	t.Parallel()
	p, g := gated(t)
	p.start("--drain-delay", "0s", "--envoy-drain-window", "40s")
	tcp := p.hold()
	hook := start(t, "hook", waiterPath, p.marker)
	p.router.signal(syscall.SIGTERM)
	p.awaitSaid("Envoy tells its clients to go")
	p.router.signal(syscall.SIGKILL)
	hook.signal(syscall.SIGKILL)
	<-hook.done
	p.restartRouter()
	p.until("the pod to be ready again", func() bool { return p.status("/readyz") == http.StatusOK })
	if !p.router.said("an earlier drain of Envoy was undone") {
		t.Error("it says nothing")
	}
	again := p.get(t.Context(), "/hold")
	g.let()
	if !again.ok() {
		t.Error(again)
	}
	p.flows(tcp)
}
