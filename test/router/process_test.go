package router

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// proc is a container's process and what it says.
type proc struct {
	name  string
	cmd   *exec.Cmd
	began time.Time
	done  chan struct{}
	ended time.Time // after done

	mu    sync.Mutex
	lines []string
}

func start(t *testing.T, name string, line ...string) *proc {
	t.Helper()
	p := &proc{name: name, cmd: exec.Command(line[0], line[1:]...), began: time.Now(), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	pipe, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.collect(pipe) // ends with the process
	t.Cleanup(func() {
		p.signal(syscall.SIGKILL)
		<-p.done
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.log())
		}
	})
	return p
}

func (p *proc) collect(pipe io.Reader) {
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, lines.Text())
		p.mu.Unlock()
	}
	_ = p.cmd.Wait() // the code is in ProcessState
	p.ended = time.Now()
	close(p.done)
}

func (p *proc) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

func (p *proc) said(text string) bool { return strings.Contains(p.log(), text) }

func (p *proc) signal(sig syscall.Signal) {
	select {
	case <-p.done:
	default:
		_ = p.cmd.Process.Signal(sig) // it may have ended meanwhile
	}
}

func (p *proc) isOver() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// code waits for the end: the exit code, or 128 + the signal.
func (p *proc) code() int {
	<-p.done
	if ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}
