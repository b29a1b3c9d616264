package real

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
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

// inOrder wants the first lines that contain these texts in this order.
func (s *stage) inOrder(texts ...string) {
	s.Helper()
	log, from := s.run.Log(), 0
	for _, text := range texts {
		i := bytes.Index([]byte(log[from:]), []byte(text))
		if i < 0 {
			s.Errorf("the log has no %q (after what must come before it)", text)
			return
		}
		from += i
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

// stream is a proxied TCP connection in ping-pong for as long as both sides want.
type stream struct {
	conn  *net.TCPConn
	ended chan struct{} // closed at the first answer that didn't come
	at    time.Time
	pings atomic.Int64
}

// stream opens one and waits for its first answer.
func (s *stage) stream() *stream {
	s.Helper()
	c, err := net.DialTimeout("tcp", s.Target().TCP, patience)
	if err != nil {
		s.Fatal(err)
	}
	st := &stream{conn: c.(*net.TCPConn), ended: make(chan struct{})}
	go st.pingPong() // joined by the cleanup
	s.Cleanup(func() { c.Close(); <-st.ended })
	s.until("the stream's first answer", func() bool { return st.pings.Load() > 0 || st.isOver() })
	return st
}

func (st *stream) pingPong() {
	defer close(st.ended)
	beat := time.NewTicker(20 * time.Millisecond)
	defer beat.Stop()
	answer := make([]byte, 1)
	for {
		_ = st.conn.SetDeadline(time.Now().Add(patience))
		_, err := st.conn.Write([]byte("p"))
		if err == nil {
			_, err = io.ReadFull(st.conn, answer)
		}
		if err != nil {
			st.at = time.Now()
			return
		}
		st.pings.Add(1)
		<-beat.C
	}
}

func (st *stream) isOver() bool {
	select {
	case <-st.ended:
		return true
	default:
		return false
	}
}

// flows waits for ten more answers: the stream is whole.
func (s *stage) flows(st *stream) {
	s.Helper()
	want := st.pings.Load() + 10
	s.until("the stream to go on", func() bool { return st.isOver() || st.pings.Load() >= want })
	if st.isOver() {
		s.Error("the stream was cut")
	}
}

// wasCut waits for a stream's end, and wants it at the earliest then.
func (s *stage) wasCut(st *stream, earliest time.Time) {
	s.Helper()
	s.until("the stream to be cut", st.isOver)
	if st.at.Before(earliest) {
		s.Errorf("cut %v too early", earliest.Sub(st.at))
	}
}

// silentControlPlane puts a control plane into the next bootstraps that takes
// connections and never answers; they wait for it for ever (fact 20). The
// result counts the connections: an Envoy that has made one is in init.
func (s *stage) silentControlPlane() *atomic.Int64 {
	s.Helper()
	dir, err := os.MkdirTemp("", "ax") // not the node's, where nothing may be left
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { os.RemoveAll(dir) })
	s.Bootstrap.XDS, s.Bootstrap.InitialFetchTimeout = filepath.Join(dir, "xds"), 0
	l, err := net.Listen("unix", s.Bootstrap.XDS)
	if err != nil {
		s.Fatal(err)
	}
	var count atomic.Int64
	done := make(chan struct{})
	go func() { // joined by the cleanup
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			count.Add(1)
		}
	}()
	s.Cleanup(func() { l.Close(); <-done })
	return &count
}

// script writes an executable beside the node's files.
func (s *stage) script(name, text string) string {
	s.Helper()
	path := filepath.Join(s.Dir, name)
	if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		s.Fatal(err)
	}
	return path
}

// wrapEnvoy puts a script into Envoy's place that runs the real one at $ENVOY
// after the given lines.
func (s *stage) wrapEnvoy(lines string) {
	s.Helper()
	inner := filepath.Join(s.Dir, "bin", "wrapped")
	if _, err := os.Lstat(inner); err != nil {
		if err := node.Install(s.EnvoyPath, inner); err != nil {
			s.Fatal(err)
		}
	}
	s.script("bin/envoy", "ENVOY="+inner+"\n"+lines+"\nexec $ENVOY \"$@\"")
}

// withheld is a verify command that epoch 0 passes and no other before the
// file at the second path is there.
func (s *stage) withheld() (command, gate string) {
	gate = filepath.Join(s.Dir, "gate")
	return s.script("verify", `[ "$AETHER_EPOCH" = 0 ] || [ -e `+gate+` ]`), gate
}

func (s *stage) touch(path string) {
	s.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// inState wants an epoch to have a process and is in the given state.
func inState(epoch int, state string) func(node.Status) bool {
	return func(st node.Status) bool {
		e := st.Of(epoch)
		return e != nil && e.PID > 0 && e.State == state
	}
}

// proxyctl runs the command and returns its exit code and all that it printed.
func (s *stage) proxyctl(args ...string) (int, string) {
	s.Helper()
	agent, err := node.Agent(s.ctx)
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, agent, append([]string{"proxyctl", "--control-socket", s.Control}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.Fatalf("proxyctl %v: %v", args, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// tag is the x-epoch header of an answer on a fresh connection.
func (s *stage) tag() string {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + s.Target().HTTP + "/hello")
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

func (s *stage) kill(pid int, sig syscall.Signal) {
	s.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.Fatal(err)
	}
}
