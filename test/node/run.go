package node

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"aether.internal/tools/runfile"
)

// Line is one line of the supervisor's log.
type Line struct {
	Time    time.Time
	Level   string
	Message string
	Source  string // "envoy" for its own lines
	Epoch   int
	Raw     string
}

// Run is a running supervisor.
type Run struct {
	Node *Node
	Cmd  *exec.Cmd
	// OnLine, when set before the start, sees each log line. While it doesn't
	// return nobody reads the supervisor's output.
	OnLine func(Line)
	// Through is a command that executes what follows it, like prlimit or
	// unshare; set before the start.
	Through []string
	// Namespaces are clone flags for the supervisor, set before the start.
	Namespaces uintptr

	mu    sync.Mutex
	lines []Line
	read  chan struct{}
	done  chan struct{}
	err   error
}

var built struct {
	sync.Once
	path string
	err  error
}

// Agent builds the agent binary once per process and returns its path. $AGENT
// names one that is there already.
func Agent(ctx context.Context) (string, error) {
	if path := runfile.Path("AGENT"); path != "" {
		return path, nil
	}
	built.Do(func() {
		_, self, _, _ := runtime.Caller(0)
		root := filepath.Dir(filepath.Dir(filepath.Dir(self)))
		dir, err := os.MkdirTemp("", "agent")
		if err != nil {
			built.err = err
			return
		}
		built.path = filepath.Join(dir, "agent")
		// Git refuses to tell the revision of a checkout that somebody else owns.
		cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", built.path, "./agent/cmd/agent")
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("build the agent: %w\n%s", err, out)
		}
	})
	return built.path, built.err
}

// RemoveAgent removes what Agent built.
func RemoveAgent() {
	if built.path != "" {
		os.RemoveAll(filepath.Dir(built.path))
	}
}

// Start starts the supervisor with Args(extra...).
func (n *Node) Start(ctx context.Context, extra ...string) (*Run, error) {
	r := &Run{Node: n}
	return r, r.Start(ctx, extra...)
}

// Start starts r's supervisor.
func (r *Run) Start(ctx context.Context, extra ...string) error {
	agent, err := Agent(ctx)
	if err != nil {
		return err
	}
	line := slices.Concat(r.Through, []string{agent}, r.Node.Args(extra...))
	r.Cmd = exec.Command(line[0], line[1:]...)
	// Its own session: a test's Ctrl-C must not reach it twice.
	r.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: r.Namespaces}
	pipe, err := r.Cmd.StderrPipe()
	if err != nil {
		return err
	}
	r.read, r.done = make(chan struct{}), make(chan struct{})
	if err := r.Cmd.Start(); err != nil {
		return err
	}
	go r.collect(pipe) // ends with the supervisor and all its Envoys
	go func() {
		<-r.read
		r.err = r.Cmd.Wait()
		close(r.done)
	}()
	return nil
}

func (r *Run) collect(pipe io.Reader) {
	defer close(r.read)
	lines := bufio.NewScanner(pipe)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := parseLine(lines.Text())
		r.mu.Lock()
		r.lines = append(r.lines, line)
		r.mu.Unlock()
		if r.OnLine != nil {
			r.OnLine(line)
		}
	}
}

func parseLine(text string) Line {
	var in struct {
		Time   time.Time
		Level  string
		Msg    string
		Source string
		Epoch  *int
	}
	line := Line{Raw: text, Message: text, Epoch: -1}
	if json.Unmarshal([]byte(text), &in) == nil {
		line.Time, line.Level, line.Message, line.Source = in.Time, in.Level, in.Msg, in.Source
		if in.Epoch != nil {
			line.Epoch = *in.Epoch
		}
	}
	return line
}

// Lines are all log lines so far.
func (r *Run) Lines() []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Line(nil), r.lines...)
}

// Log is the whole log as text.
func (r *Run) Log() string {
	var b strings.Builder
	for _, l := range r.Lines() {
		b.WriteString(l.Raw + "\n")
	}
	return b.String()
}

// Logged counts the lines whose message contains text.
func (r *Run) Logged(text string) int {
	count := 0
	for _, l := range r.Lines() {
		if strings.Contains(l.Raw, text) {
			count++
		}
	}
	return count
}

// Signal sends sig to the supervisor.
func (r *Run) Signal(sig syscall.Signal) error { return r.Cmd.Process.Signal(sig) }

// Done is closed when the supervisor and everybody who holds its stderr, its
// Envoys included, have ended.
func (r *Run) Done() <-chan struct{} { return r.done }

// ExitCode waits for the end: 128+n for a signal.
func (r *Run) ExitCode(ctx context.Context) (int, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return -1, fmt.Errorf("the supervisor has not ended: %w", context.Cause(ctx))
	}
	var exit *exec.ExitError
	switch {
	case r.err == nil:
		return 0, nil
	case !errors.As(r.err, &exit):
		return -1, r.err
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Kill ends a supervisor that a test has left running; the kernel ends its Envoys.
func (r *Run) Kill() {
	select {
	case <-r.done:
	default:
		_ = r.Signal(syscall.SIGKILL)
		<-r.done
	}
}
