package real

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"aether.internal/test/node"
)

// until polls a condition that the status doesn't show.
func (s *stage) until(what string, met func() bool) {
	s.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for !met() {
		select {
		case <-poll.C:
		case <-limit.C:
			s.Fatalf("awaiting %s: not within %v", what, patience)
		}
	}
}

// logs waits for a line of the supervisor's log.
func (s *stage) logs(text string) {
	s.Helper()
	s.until(fmt.Sprintf("the log to say %q", text), func() bool { return s.run.Logged(text) > 0 })
}

// logsOnce waits for a line that must not come twice.
func (s *stage) logsOnce(text string) {
	s.Helper()
	s.logs(text)
	if n := s.run.Logged(text); n != 1 {
		s.Errorf("the log says %q %d times", text, n)
	}
}

// inOrder waits for the first lines that contain these texts, and wants them in
// this order. It waits, for the log is written after the status it goes with.
func (s *stage) inOrder(texts ...string) {
	s.Helper()
	from := 0
	for _, text := range texts {
		s.until(fmt.Sprintf("the log to say %q, after what must come before it", text), func() bool {
			i := strings.Index(s.run.Log()[from:], text)
			from += max(i, 0)
			return i >= 0
		})
	}
}

// stays wants the status to remain as it is for a while: that nothing happens can
// only be waited for.
func (s *stage) stays(d time.Duration, what string, as func(node.Status) bool) {
	s.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if st := s.status(); !as(st) {
			s.Fatalf("%s: no longer so: %+v", what, st)
		}
	}
}

// inState wants an epoch to have a process and is in the given state.
func inState(epoch int, state string) func(node.Status) bool {
	return func(st node.Status) bool {
		e := st.Of(epoch)
		return e != nil && e.PID > 0 && e.State == state
	}
}

// tag is the x-epoch header of an answer on a fresh connection.
func (s *stage) tag() string {
	client := http.Client{Timeout: patience / 2, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.Target().HTTP + "/")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	return resp.Header.Get("x-epoch")
}

// awaitTag waits until the bootstrap with this tag answers, and no other epoch
// is on its way.
func (s *stage) awaitTag(want string) {
	s.Helper()
	began := time.Now()
	s.until("tag "+want+" to be served", func() bool { return s.tag() == want })
	s.Logf("%s is served %v later", want, time.Since(began).Round(time.Millisecond))
}
