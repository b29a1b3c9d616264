package real

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"aether.internal/test/node"
)

// A drained Envoy serves and says at each answer that its client should go; it
// stays so across a handoff, and undrain undoes it.
func TestRule13DrainTakesOutOfTheTrafficAndUndrainPutsBack(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	s.asksToClose(false)

	s.told("drain", "drained: epoch 0 is not ready")
	s.marker("drained", false)
	s.asksToClose(true)
	s.hup()
	s.await("epoch 1 to serve, not ready", func(st node.Status) bool { return st.Serving == 1 && !st.Ready })
	s.marker("drained, after a handoff", false)
	s.until("the new epoch to ask its clients to go", func() bool { return s.closes() })

	s.told("undrain", "undrained: epoch 1 is ready")
	s.marker("undrained", true)
	s.asksToClose(false)
	s.hup()
	s.await("epoch 2 to serve", node.Serves(2))
	s.asksToClose(false)

	s.historyTells(`committed 1 to 2`, `committed 0 to 1`, `committed -1 to 0`)
	s.doctorLooks()
	s.stop()
	s.nothingLeft()
}

// told runs proxyctl with a command that must succeed.
func (s *stage) told(command, want string) {
	s.Helper()
	if code, out := s.proxyctl(command); code != 0 || !strings.Contains(out, want) {
		s.Errorf("proxyctl %s: exit code %d: %s", command, code, out)
	}
}

// closes tells whether an answer asks its client to close the connection.
func (s *stage) closes() bool {
	s.Helper()
	client := http.Client{Timeout: patience, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/echo", s.Bootstrap.HTTP))
	if err != nil {
		s.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Close
}

func (s *stage) asksToClose(want bool) {
	s.Helper()
	if got := s.closes(); got != want {
		s.Errorf("an answer asks its client to close: %v, want %v", got, want)
	}
}

func (s *stage) historyTells(want ...string) {
	s.Helper()
	code, out := s.proxyctl("history", "-o", "json")
	var h struct {
		Handoffs []struct {
			Outcome  string
			From, To int
		}
	}
	if err := json.Unmarshal([]byte(out), &h); err != nil || code != 0 || len(h.Handoffs) != len(want) {
		s.Fatalf("proxyctl history: exit code %d, %v: %s", code, err, out)
	}
	for i, try := range h.Handoffs {
		if got := fmt.Sprintf("%s %d to %d", try.Outcome, try.From, try.To); got != want[i] {
			s.Errorf("number %d of the history is %q, want %q", i, got, want[i])
		}
	}
}

// doctorLooks: the admin of these tests is at a TCP port of a network namespace
// that the test itself is in, and concurrency is not configured. The same was
// said in the log when the first epoch served.
func (s *stage) doctorLooks() {
	s.Helper()
	code, out := s.proxyctl("doctor")
	for _, want := range []string{"ok     base-id: nobody else answers", "ok     segment: /dev/shm/envoy_shared_memory_", "to do  admin address: ", "to do  concurrency: "} {
		if !strings.Contains(out, want) {
			s.Errorf("proxyctl doctor doesn't say %q", want)
		}
	}
	if code != 1 || s.Failed() {
		s.Errorf("proxyctl doctor: exit code %d:\n%s", code, out)
	}
	for _, want := range []string{`"check":"admin address"`, `"check":"concurrency"`} {
		s.logsOnce(want)
	}
}
