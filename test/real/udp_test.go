package real

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"aether.internal/test/node"
)

// With a UDP listener the newcomer's UDP is paused until Envoy's own timer has
// ended the parent, which forwards meanwhile. QUIC was tried by hand only.
func TestRule6WithUDPTheParentEndsByEnvoysTimer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	echo := s.udpEcho()
	port := s.freeUDPPort()
	udp := udpListener(port, echo)
	s.writeWith("v1", udp)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "4s", "--handoff-deadline", "1m")
	flows := s.udpFlows(port, 4)
	s.loadWith(brisk(s.Target()))
	for epoch := 1; epoch <= 2; epoch++ {
		flows.mark(fmt.Sprintf("epoch %d serves", epoch-1))
		s.writeWith(fmt.Sprintf("v%d", epoch+1), udp)
		st := s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
		if st.Mode != "udp" {
			t.Errorf("mode %q, want udp", st.Mode)
		}
		if e := st.Of(epoch - 1); e == nil || e.State != "draining" || e.TimeLeftSeconds >= 0 {
			t.Errorf("the parent has a deadline of ours, or is gone: %+v", e)
		}
		flows.mark(fmt.Sprintf("epoch %d hands over", epoch-1))
		s.await("the parent to end by itself", node.Alone(epoch))
		flows.mark("its end")
		s.until("every flow to work again", flows.allAnswered())
	}
	flows.mark("after")
	if s.run.Logged("old epoch is ended") != 0 || s.run.Logged("taken back") != 0 {
		t.Error("a parent was ended by us, or a newcomer taken back")
	}
	s.unharmed()
	s.stop()
}

// The next handoff waits while a parent lives.
func TestRule4WithUDPNoHandoffStartsWhileAParentLives(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	udp := udpListener(s.freeUDPPort(), s.udpEcho())
	s.writeWith("v1", udp)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "3s")
	s.writeWith("v2", udp)
	s.await("epoch 1 to serve", node.Serves(1))
	s.writeWith("v3", udp)
	s.await("the next to wait", func(st node.Status) bool {
		return st.Pending != nil && strings.Contains(st.Pending.WaitsFor, "epoch 0 (draining")
	})
	s.await("epoch 2 to serve", node.Serves(2))
	s.inOrder(`"old epoch has ended","epoch":0`, `"newcomer started","epoch":2`)
	s.stop()
}

func (s *stage) freeUDPPort() int {
	s.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port
}

// udpEcho sends every datagram back, until the test ends.
func (s *stage) udpEcho() string {
	s.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		s.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(done)
		buf := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buf[:n], from) // lost or not: that is counted elsewhere
		}
	}()
	s.Cleanup(func() { c.Close(); <-done })
	return c.LocalAddr().String()
}

// udpListener is a proxy of datagrams to an upstream.
func udpListener(port int, upstream string) string {
	_, to, _ := net.SplitHostPort(upstream)
	return fmt.Sprintf(`
  - name: udp
    address: {socket_address: {protocol: UDP, address: 127.0.0.1, port_value: %d}}
    listener_filters:
    - name: envoy.filters.udp_listener.udp_proxy
      typed_config:
        "@type": type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig
        stat_prefix: udp
        matcher: {on_no_match: {action: {name: route, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route, cluster: udp}}}}`, port) +
		clustersFollow + fmt.Sprintf(`
  - {name: udp, type: STATIC, load_assignment: {cluster_name: udp, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]}}`, to)
}

// udpFlows are clients with one datagram after the other.
type udpFlows struct {
	*stage
	sent, answered []atomic.Int64
	last           [2]int64
}

func (s *stage) udpFlows(port, n int) *udpFlows {
	s.Helper()
	f := &udpFlows{stage: s, sent: make([]atomic.Int64, n), answered: make([]atomic.Int64, n)}
	for i := range n {
		c, err := net.Dial("udp", loopback(port))
		if err != nil {
			s.Fatal(err)
		}
		done := make(chan struct{})
		go func() { // joined by the cleanup
			defer close(done)
			f.flow(i, c)
		}()
		s.Cleanup(func() { c.Close(); <-done })
	}
	s.until("the first answers", f.allAnswered())
	return f
}

// flow counts a datagram as lost when its answer isn't there a second later.
func (f *udpFlows) flow(i int, c net.Conn) {
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	buf := make([]byte, 64)
	for n := 0; ; n++ {
		text := fmt.Sprintf("%d-%d", i, n)
		if _, err := c.Write([]byte(text)); errors.Is(err, net.ErrClosed) {
			return
		}
		f.sent[i].Add(1)
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		for {
			got, err := c.Read(buf)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil && string(buf[:got]) != text {
				continue // a late answer to one counted as lost
			}
			if err == nil {
				f.answered[i].Add(1)
			} else if !errors.Is(err, os.ErrDeadlineExceeded) {
				<-pause.C // refused: nobody is there
			}
			break
		}
		<-pause.C
	}
}

// allAnswered is true once each flow has had ten more answers.
func (f *udpFlows) allAnswered() func() bool {
	var before []int64
	for i := range f.answered {
		before = append(before, f.answered[i].Load())
	}
	return func() bool {
		for i := range f.answered {
			if f.answered[i].Load() < before[i]+10 {
				return false
			}
		}
		return true
	}
}

// mark logs what was lost since the last mark.
func (f *udpFlows) mark(until string) {
	var now [2]int64
	for i := range f.sent {
		now[0] += f.sent[i].Load()
		now[1] += f.answered[i].Load()
	}
	sent, answered := now[0]-f.last[0], now[1]-f.last[1]
	f.last = now
	f.Logf("until %s: %d datagrams, about %d lost", until, sent, max(sent-answered, 0))
}

// The relay of a UDP newcomer passes the word that ends its parent, and goes on
// doing so in the next program.
func TestAnUpgradeWithUDPWhileAParentDrains(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	port := s.freeUDPPort()
	udp := udpListener(port, s.udpEcho())
	s.writeWith("v1", udp)
	s.start("--drain-time", "1s", "--parent-shutdown-time", "5s", "--handoff-deadline", "1m")
	flows := s.udpFlows(port, 4)
	s.loadWith(brisk(s.Target()))
	s.upgrades()
	s.writeWith("v2", udp)
	s.await("epoch 1 to serve", node.Serves(1))
	s.upgrades()
	if e := s.status().Of(0); e == nil || e.State != "draining" {
		t.Errorf("the parent is gone before its time: %+v", e)
	}
	s.await("the parent to end by itself", node.Alone(1))
	s.until("every flow to work again", flows.allAnswered())
	s.upgrades()
	s.writeWith("v3", udp)
	s.await("epoch 2 to serve", node.Serves(2))
	s.until("every flow to work again", flows.allAnswered())
	if s.run.Logged("old epoch is ended") != 0 || s.run.Logged("taken back") != 0 {
		t.Error("a parent was ended by us, or a newcomer taken back")
	}
	s.unharmed()
	s.stop()
}
