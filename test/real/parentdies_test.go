package real

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
	"aether.internal/test/xds"
)

// Facts 4 and 28: a parent that dies early doesn't take its newcomer with it.
// The relay answers in its place, also a request that was outstanding; but one
// answer too many would be read for that of the next request, of another kind,
// and Envoy aborts for it at its next stats flush.
func TestFact28ANewcomerOutlivesAParentThatDies(t *testing.T) {
	for name, stopped := range map[string]bool{"NothingOutstanding": false, "WithARequestOutstanding": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t, 0)
			p.writeFlushing(time.Second)
			p.start("--watch-config=false")
			p.set(p.silent(xds.Listeners))
			if stopped { // the newcomer will wait for its first answer
				p.kill(p.status().Of(0).PID, syscall.SIGSTOP)
			}
			p.hup()
			st := p.await("a newcomer in its initialisation", inState(1, "starting"))
			if stopped {
				p.until("the request to be outstanding", func() bool { return waitsForAnAnswer(st.Of(1).PID) })
			} else {
				p.logs("shutting down admin due to child startup")
				p.until("the newcomer to wait for its control plane", func() bool { _, err := p.admin("/ready"); return err == nil })
			}
			p.kill(st.Of(0).PID, syscall.SIGKILL)
			p.logs("the newcomer goes on without its parent")
			p.until("the newcomer's admin", func() bool { _, err := p.admin("/ready"); return err == nil })
			p.flushes(3)
			p.recover()
			p.await("epoch 1 to serve", node.Serves(1))
			p.flushes(3)
			p.hup()
			p.await("epoch 2 to serve", node.Serves(2))
			p.stop()
		})
	}
}

// flushes waits until whoever has the admin has flushed its stats n times, a
// second each: uptime is one of them.
func (s *stage) flushes(n int64) {
	s.Helper()
	uptime := func() int64 {
		text, err := s.admin("/stats?filter=" + regexp.QuoteMeta("server.uptime"))
		if err != nil {
			s.Fatalf("the admin has gone: %v", err)
		}
		value, _ := strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(text, "server.uptime: ")), 10, 64)
		return value
	}
	begin := uptime()
	s.until("flushes of the stats", func() bool { return uptime() >= begin+n })
}

// waitsForAnAnswer tells whether a process sleeps in the kernel for a datagram.
func waitsForAnAnswer(pid int) bool {
	where, err := os.ReadFile(fmt.Sprintf("/proc/%d/wchan", pid))
	return err == nil && strings.Contains(string(where), "wait_for_more_packets")
}
