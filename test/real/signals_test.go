package real

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// SIGUSR1 kills an Envoy that has just been started: it is remembered until the
// epoch's own admin has answered once, and asked for again by then.
func TestFact22EarlyLogReopenKillsNoNewcomer(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.run = &node.Run{Node: s.Node}
	s.run.OnLine = func(l node.Line) {
		if l.Message == "newcomer started" { // a few milliseconds after its fork
			_ = s.run.Signal(syscall.SIGUSR1)
		}
	}
	if err := s.run.Start(s.ctx); err != nil {
		s.Fatal(err)
	}
	for epoch := range 4 {
		s.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
		s.hup()
	}
	s.await("epoch 4 to serve", node.Serves(4))
	if n := s.run.Logged("taken back"); n > 0 {
		s.Errorf("%d newcomers were taken back", n)
	}
	s.stop()
	s.nothingLeft()
}

// A draining epoch still writes its log: it has to open the new file as well.
func TestFact22LogReopenReachesADrainingEpoch(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	log := filepath.Join(s.Dir, "access.log")
	s.writeWithAccessLog("v1", log)
	s.start("--parent-shutdown-time", "60s", "--", "--file-flush-interval-msec", "50")
	old := s.heldRequest("/before")
	s.writeWithAccessLog("v2", log)
	s.await("epoch 1 to serve", node.Serves(1))
	s.contains(log, "v1 /before")

	if err := os.Rename(log, log+".1"); err != nil {
		s.Fatal(err)
	}
	s.signal(syscall.SIGUSR1)
	s.until("the log file to be there again", func() bool { return len(exists(log)) > 0 })
	old.finish(s) // answered by epoch 0, whose log it goes to
	s.contains(log, "v1 /echo")
	s.get(&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, "/after")
	s.contains(log, "v2 /after")
	s.stop()
	s.nothingLeft()
}

// SIGUSR1 may come at any time, and before anything runs.
func TestFact22LogReopenDuringTheFirstValidation(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	gate := filepath.Join(s.Dir, "gate")
	mark := filepath.Join(s.Dir, "reached")
	s.wrapEnvoy(`case " $* " in *" --mode "*) : > ` + mark + `; until [ -e ` + gate + ` ]; do sleep 0.02; done;; esac`)
	s.launch()
	s.until("the validator to run", func() bool { return len(exists(mark)) > 0 })
	s.signal(syscall.SIGUSR1)
	s.touch(gate)
	s.await("epoch 0 to serve", node.Serves(0))
	s.stop()
	s.nothingLeft()
}

// writeWithAccessLog makes each HTTP listener log its tag and path.
func (s *stage) writeWithAccessLog(tag, path string) {
	s.Helper()
	s.Bootstrap.EpochTag = tag
	text, err := s.Bootstrap.YAML()
	if err != nil {
		s.Fatal(err)
	}
	log := fmt.Sprintf(`          access_log:
          - name: envoy.access_loggers.file
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog
              path: %s
              log_format: {text_format_source: {inline_string: "%s %%REQ(:PATH)%%\n"}}
          codec_type: AUTO
`, path, tag)
	if err := s.WriteRaw(bytes.ReplaceAll(text, []byte("          codec_type: AUTO\n"), []byte(log))); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) contains(path, text string) {
	s.Helper()
	s.until(fmt.Sprintf("%s to contain %q", filepath.Base(path), text), func() bool {
		data, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(data), text)
	})
}

// heldRequest is a POST whose body ends when the test says so.
type heldRequest struct {
	body *io.PipeWriter
	done chan error
}

// heldRequest asks for something first: the connection it keeps is the serving
// epoch's by then, and in nobody's accept queue.
func (s *stage) heldRequest(before string) *heldRequest {
	s.Helper()
	client := http.Client{Timeout: 3 * patience, Transport: &http.Transport{MaxConnsPerHost: 1}}
	s.get(&client, before)
	read, write := io.Pipe()
	h := &heldRequest{body: write, done: make(chan error, 1)}
	go func() { // joined by finish or the cleanup
		defer client.CloseIdleConnections()
		resp, err := client.Post("http://"+s.Target().HTTP+"/echo", "text/plain", read)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		h.done <- err
		close(h.done)
	}()
	s.Cleanup(func() { write.Close(); <-h.done })
	if _, err := io.WriteString(write, "begun"); err != nil {
		s.Fatal(err)
	}
	return h
}

// finish ends the body and wants the whole answer.
func (h *heldRequest) finish(s *stage) {
	s.Helper()
	h.body.Close()
	if err := <-h.done; err != nil {
		s.Errorf("a request of a draining epoch was cut: %v", err)
	}
}

func (s *stage) get(c *http.Client, path string) {
	s.Helper()
	resp, err := c.Get("http://" + s.Target().HTTP + path)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if err != nil {
		s.Fatal(err)
	}
}

// Envoy asks the kernel for SIGTERM when the thread that forked it dies: so no
// Envoy outlives a supervisor that was killed, and the next one starts clean, once
// they have gone: a withheld newcomer looks for its parent for ten seconds first.
func TestFact3EnvoysEndWithASupervisorThatIsKilled(t *testing.T) {
	for _, c := range []struct {
		name    string
		arrange func(*stage)
	}{
		{"serving", func(s *stage) { s.start() }},
		{"serving beside a draining parent", func(s *stage) {
			s.start()
			s.stream()
			s.hup()
			s.await("epoch 1 to serve", node.Serves(1))
		}},
		{"a withheld newcomer", func(s *stage) {
			verify, _ := s.withheld()
			s.start("--verify-command", verify)
			s.hup()
			s.await("epoch 1 to be withheld", inState(1, "live"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			c.arrange(s)
			s.signal(syscall.SIGKILL)
			s.exit(128 + int(syscall.SIGKILL))
			s.start() // over the dead one's marker, sockets, seats and segment
			s.stop()
			s.nothingLeft()
		})
	}
}

// No goroutine and no thread but the forker's is an Envoy's parent: handoffs
// and reloads make plenty of both come and go.
func TestFact3EnvoyOutlivesThreadsOfTheSupervisor(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.start()
	pid := s.status().Of(0).PID
	done := make(chan struct{}, 64)
	for range cap(done) { // each a connection, and a goroutine of the control server
		go func() {
			defer func() { done <- struct{}{} }()
			if c, err := net.DialTimeout("unix", s.Control, patience); err == nil {
				fmt.Fprint(c, "GET /v1/status HTTP/1.0\r\n\r\n")
				_ = c.SetDeadline(time.Now().Add(patience))
				_, _ = c.Read(make([]byte, 1))
				c.Close()
			}
		}()
	}
	for range cap(done) {
		<-done
	}
	if !alive(pid) || s.run.Logged("ended by itself") > 0 {
		s.Error("epoch 0 has ended")
	}
	s.stop()
}
