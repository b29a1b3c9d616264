package process

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The main thread belongs to the forker for life (rule 15).
func init() { runtime.LockOSThread() }

// forker owns every child. All its methods run on the main thread.
type forker struct {
	jobs     chan func(*forker)
	children map[int]*Process
	orphans  bool // we are PID 1 or a subreaper: children we never started are ours to reap
}

var current atomic.Pointer[forker]

// Main gives the main thread to the forker, runs f on a goroutine of its own
// and exits with f's result. Call it first thing in main(), or in TestMain.
func Main(f func() int) {
	fk := &forker{
		jobs:     make(chan func(*forker)),
		children: map[int]*Process{},
		orphans:  adoptsOrphans(),
	}
	if !current.CompareAndSwap(nil, fk) {
		panic("process.Main called twice")
	}
	// What our own starter left open is not Envoy's business either.
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	fk.inherit()
	exit := make(chan int, 1)
	go func() { exit <- f() }()
	os.Exit(fk.run(exit))
}

// HasMain tells whether Start can work.
func HasMain() bool { return current.Load() != nil }

// run executes every fork, on the main thread: Envoy asks the kernel for
// SIGTERM when the thread that forked it dies.
func (f *forker) run(exit <-chan int) int {
	sigchld := make(chan os.Signal, 1)
	signal.Notify(sigchld, syscall.SIGCHLD)
	f.reap() // children inherited over an exec of ourselves may have ended already
	for {
		select {
		case job := <-f.jobs:
			job(f)
		case <-sigchld:
			f.reap()
		case code := <-exit:
			return code
		}
	}
}

// do runs job on the main thread and waits for it.
func do(job func(*forker)) error {
	f := current.Load()
	if f == nil {
		return ErrNoMain
	}
	done := make(chan struct{})
	f.jobs <- func(f *forker) { defer close(done); job(f) }
	<-done
	return nil
}

func (f *forker) start(s Spec) (*Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := append([]*os.File{null, s.Stdout, s.Stderr}, s.Inherit...)
	fds := make([]uintptr, len(files), len(files)+1)
	for i, file := range files {
		if file == nil {
			file = null
		}
		fds[i] = file.Fd()
	}
	path := s.Path
	if s.Exe != nil {
		exe, err := outOfTheWay(s.Exe, fds)
		if err != nil {
			return nil, err
		}
		defer syscall.Close(exe)
		path, fds = viaDescriptor(s.Exe, exe, fds)
	}
	env := s.Env
	if env == nil {
		env = os.Environ()
	}
	pid, err := syscall.ForkExec(path, append([]string{s.Path}, s.Args...), &syscall.ProcAttr{
		Dir: s.Dir, Env: env, Files: fds,
		Sys: &syscall.SysProcAttr{
			// Envoy asks for this itself, but only once it runs.
			Pdeathsig: syscall.SIGTERM,
			// A SIGTERM to our process group, or Ctrl-C, is ours to answer: Envoy would
			// end at once, undrained.
			Setpgid: true,
		},
	})
	runtime.KeepAlive(files)
	runtime.KeepAlive(s.Exe)
	if err != nil {
		return nil, &os.PathError{Op: "fork/exec", Path: s.Path, Err: err}
	}
	if s.Expendable {
		expend(pid)
	}
	p := &Process{pid: pid, done: make(chan struct{})}
	f.children[pid] = p
	return p, nil
}

// expend gives a child the highest out-of-memory score, which everybody may
// raise. Where that can't be written the kernel chooses by size.
func expend(pid int) {
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("1000"), 0)
}

// outOfTheWay duplicates exe above every descriptor that syscall.ForkExec may
// write to between fork and exec: the child's own from 0 on, and above the
// highest of fds its pipe and those of fds that would be overwritten.
func outOfTheWay(exe *os.File, fds []uintptr) (int, error) {
	const pipeAndExe = 2
	highest := slices.Max(append(fds[:len(fds):len(fds)], uintptr(len(fds))))
	return unix.FcntlInt(exe.Fd(), unix.F_DUPFD_CLOEXEC, int(highest)+1+len(fds)+pipeAndExe)
}

// viaDescriptor names an open file for exec. The descriptor is close-on-exec,
// which is past the point where the kernel resolves the name; only a script's
// interpreter opens it later, so a script's descriptor is inherited.
func viaDescriptor(exe *os.File, fd int, fds []uintptr) (string, []uintptr) {
	if isScript(exe) {
		fds = append(fds, uintptr(fd))
		fd = len(fds) - 1
	}
	return "/proc/self/fd/" + strconv.Itoa(fd), fds
}

func isScript(exe *os.File) bool {
	var magic [2]byte
	n, _ := exe.ReadAt(magic[:], 0)
	return n == 2 && string(magic[:]) == "#!"
}

// reap collects every child that has ended. Only as PID 1 (or subreaper) are
// strangers collected: elsewhere they may belong to os/exec in this program,
// whose exit codes must not be stolen.
func (f *forker) reap() {
	if f.orphans {
		for {
			var ws syscall.WaitStatus
			pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || pid <= 0 {
				return
			}
			f.ended(pid, ws)
		}
	}
	for pid := range f.children {
		var ws syscall.WaitStatus
		if got, err := syscall.Wait4(pid, &ws, syscall.WNOHANG, nil); err == nil && got == pid {
			f.ended(pid, ws)
		}
	}
}

func (f *forker) ended(pid int, ws syscall.WaitStatus) {
	p := f.children[pid]
	if p == nil {
		return // an orphan
	}
	delete(f.children, pid)
	p.status = Status{Code: ws.ExitStatus(), Core: ws.CoreDump()}
	if ws.Signaled() {
		p.status.Signal = ws.Signal()
	}
	close(p.done)
}

func adoptsOrphans() bool {
	if os.Getpid() == 1 {
		return true
	}
	var sub int32
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&sub)), 0, 0, 0); err != nil {
		return false
	}
	return sub != 0
}

func signalName(s syscall.Signal) string {
	if n := unix.SignalName(s); n != "" {
		return n
	}
	return "unknown"
}
