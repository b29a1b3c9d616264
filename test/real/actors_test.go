package real

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"aether.internal/test/node"
)

// startPatient is start with a limit that a busy machine's streams end within:
// what a test under load judges is what is cut before it.
func (s *stage) startPatient(args ...string) {
	s.Helper()
	s.start(append([]string{"--parent-shutdown-time", "60s"}, args...)...)
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

func (s *stage) kill(pid int, sig syscall.Signal) {
	s.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		s.Fatal(err)
	}
}
