// Package process starts, signals and reaps children, all on the main thread.
//
// Envoy asks the kernel for SIGTERM when the *thread* that forked it dies
// (fact 3), so a fork from any other thread of a Go program is a random
// end of Envoy. Forking, signalling and reaping also happen on one goroutine:
// a pid can't be reused between a look and a signal, and an exit can't be
// reaped before its process is known.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrNoMain is returned when nobody gave the main thread to the forker.
var ErrNoMain = errors.New("process: no forker: call process.Main from main() (or TestMain)")

// Spec describes one child.
type Spec struct {
	Path string   // argv[0], and what is executed when Exe is nil
	Exe  *os.File // when set, what is executed: the open file, whatever Path names by now
	Args []string // argv without argv[0]
	Env  []string // nil means our own environment
	Dir  string

	// Expendable: when memory runs out the kernel ends it before anybody else.
	Expendable bool

	Stdout, Stderr *os.File   // nil means /dev/null; stdin always is
	Inherit        []*os.File // descriptors 3, 4, … of the child
}

// Status is how a child ended.
type Status struct {
	Code   int            // exit code, -1 when ended by a signal
	Signal syscall.Signal // 0 when it exited
	Core   bool
}

func (s Status) String() string {
	if s.Signal == 0 {
		return fmt.Sprintf("exit code %d", s.Code)
	}
	core := ""
	if s.Core {
		core = ", core dumped"
	}
	return fmt.Sprintf("signal %d (%s)%s", int(s.Signal), signalName(s.Signal), core)
}

// Process is a started child. It is safe for concurrent use.
type Process struct {
	pid    int
	done   chan struct{}
	status Status // written before done is closed
}

// Pid is the child's process id, valid as a name only until Done is closed.
func (p *Process) Pid() int { return p.pid }

// Done is closed when the child was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait blocks until the child was reaped.
func (p *Process) Wait() Status {
	<-p.done
	return p.status
}

// Signal sends sig. A child already reaped gives os.ErrProcessDone; another
// process is never hit.
func (p *Process) Signal(sig syscall.Signal) error {
	err := os.ErrProcessDone
	if e := do(func(f *forker) {
		if f.children[p.pid] == p {
			err = syscall.Kill(p.pid, sig)
		}
	}); e != nil {
		return e
	}
	return err
}

// Start forks and executes s on the main thread.
func Start(s Spec) (*Process, error) {
	var p *Process
	var err error
	if e := do(func(f *forker) { p, err = f.start(s) }); e != nil {
		return nil, e
	}
	return p, err
}

// Run starts s and waits for it; when ctx ends first the child is killed and
// ctx's error returned. The child has always been reaped on return.
func Run(ctx context.Context, s Spec) (Status, error) {
	p, err := Start(s)
	if err != nil {
		return Status{}, err
	}
	select {
	case <-p.done:
		return p.status, nil
	case <-ctx.Done():
		_ = p.Signal(syscall.SIGKILL)
		<-p.done
		return p.status, context.Cause(ctx)
	}
}
