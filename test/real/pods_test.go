package real

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/node"
)

// Two pods on one node: two supervisors with one base-id and one state
// directory, each with a marker, a control socket and a bootstrap of its own.

// pod is another supervisor's place on the same node; nothing runs there yet.
func (s *stage) pod(name string) *stage {
	s.Helper()
	n := *s.Node
	n.ConfigPath = filepath.Join(s.Dir, name, "cfg", "envoy.yaml")
	n.EnvoyPath = filepath.Join(s.Dir, name, "bin", "envoy")
	n.Marker = filepath.Join(s.Dir, name, "run", "ready")
	n.Control = filepath.Join(s.Dir, name, "run", "control.sock")
	for _, path := range []string{n.ConfigPath, n.EnvoyPath, n.Marker} {
		s.must(os.MkdirAll(filepath.Dir(path), 0o755))
	}
	s.must(node.Install(s.EnvoyPath, n.EnvoyPath))
	p := &stage{T: s.T, Node: &n, ctx: s.ctx}
	s.must(n.Write(name))
	s.Cleanup(func() {
		if p.run != nil {
			p.run.Kill()
			if s.Failed() {
				s.Logf("%s's log:\n%s", name, p.run.Log())
			}
		}
	})
	return p
}

// takesOver starts a pod and waits until its epoch serves.
func (p *stage) takesOver(epoch int, args ...string) {
	p.Helper()
	p.launch(args...)
	p.await(fmt.Sprintf("epoch %d to serve", epoch), node.Serves(epoch))
}

func state(want string) func(node.Status) bool {
	return func(s node.Status) bool { return s.State == want }
}

func TestASurgePodTakesOverWithoutAFailedRequest(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(500 * time.Millisecond)
	b := s.pod("b")
	b.takesOver(1, "--parent-shutdown-time", "60s")
	b.marker("of the new pod", true)
	s.await("the old pod to be superseded", state("superseded"))
	s.marker("of the old pod", false)
	s.await("the old epoch to have drained", func(st node.Status) bool { return len(st.Epochs) == 0 })
	s.stop()
	b.await("the predecessor to be gone", node.Alone(1))
	s.unharmed()
	b.stop()
	s.run = nil
	b.nothingLeft()
}

func TestThreePodsInARow(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(300 * time.Millisecond)
	old := s
	for epoch := 1; epoch <= 4; epoch++ {
		p := s.pod(fmt.Sprintf("p%d", epoch))
		p.takesOver(epoch, "--parent-shutdown-time", "60s")
		old.stop() // as the DaemonSet does once the new pod is ready
		old = p
	}
	s.unharmed()
	old.stop()
	s.run = nil
	s.nothingLeft()
}

// darkness is the longest time between two answers to new connections.
type darkness struct {
	end, ended chan struct{}
	longest    time.Duration
}

// seesDark begins to measure.
func (s *stage) seesDark() *darkness {
	d := &darkness{end: make(chan struct{}), ended: make(chan struct{})}
	client := http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	url, last := "http://"+s.Target().HTTP+"/", time.Now()
	go func() { // joined by over
		defer close(d.ended)
		for beat := time.NewTicker(10 * time.Millisecond); ; <-beat.C {
			select {
			case <-d.end:
				beat.Stop()
				return
			default:
			}
			if resp, err := client.Get(url); err == nil {
				resp.Body.Close()
				d.longest = max(d.longest, time.Since(last))
				last = time.Now()
			}
		}
	}()
	return d
}

func (d *darkness) over() time.Duration {
	close(d.end)
	<-d.ended
	return d.longest
}

// killPod ends all of a pod at once, as the kernel does with a container.
func (s *stage) killPod() {
	s.Helper()
	var pids []int
	for _, e := range s.status().Epochs {
		if e.PID > 0 {
			pids = append(pids, e.PID)
		}
	}
	s.must(s.run.Signal(syscall.SIGKILL))
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.run.Kill()
	s.run = nil
}
