package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file replaces the program by another one in the same process: children,
// locks and sockets stay what they are, because the pid does and the descriptors do.

// heirVariable says in the environment of a program that was executed by Exec what
// it has inherited. It is taken out of the environment first of all.
const heirVariable = "AETHER_PROCESS_HEIR"

// heir is what Exec leaves to its successor, beside the descriptors.
type heir struct {
	PID      int   `json:"pid"` // whose it is; for anybody else the variable means nothing
	State    int   `json:"state"`
	Caught   int   `json:"caught"`
	Children []int `json:"children"`
}

// inherited is set by Main, before anybody can ask.
var inherited struct {
	state    *os.File
	children map[int]*Process
	caught   *os.File // signals that our predecessor got and had no time for
}

// early gets signals from the first moment that a successor can: until then one
// of SIGTERM or SIGINT ends it, as it does any program that is being started.
var early = make(chan os.Signal, 16)

func init() {
	if _, set := os.LookupEnv(heirVariable); set {
		signal.Notify(early, handled...)
	}
}

// Inherited is the state that was handed to Exec, nil when this program was
// started and did not replace another one.
func Inherited() *os.File { return inherited.state }

// Child is a child of the program that ours has replaced, nil when it had none of
// this pid. It may have ended since.
func Child(pid int) *Process { return inherited.children[pid] }

// Replacement is what Exec executes in our place.
type Replacement struct {
	Exe  *os.File // the program
	Args []string // with argv[0]
	// State is handed over, and so is what else Keep names by their numbers.
	State *os.File
	Keep  []int
	// Children must all be alive, as far as it is known: the end of one that was
	// told to us is not told again.
	Children []*Process
	// Signals is whom the caller has notified of signals. What comes meanwhile the
	// successor gets.
	Signals chan os.Signal
}

// ErrChildEnded: a child ended that the successor was to have.
var ErrChildEnded = errors.New("a child has just ended")

// Exec replaces the program, on the main thread: from any other one Envoy would
// get SIGTERM, at the latest a generation later (fact 3). It returns only when it
// has failed; then nothing has changed.
func Exec(r Replacement) error {
	fd, err := unix.MemfdCreate("caught signals", unix.MFD_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("memfd_create", err)
	}
	caught := os.NewFile(uintptr(fd), "caught signals")
	defer caught.Close()
	if e := do(func(f *forker) {
		err = f.exec(r, heir{PID: os.Getpid(), State: int(r.State.Fd()), Caught: fd}, caught)
	}); e != nil {
		return e
	}
	raise(caught)
	return err
}

func (f *forker) exec(r Replacement, h heir, caught *os.File) error {
	for _, c := range r.Children {
		// Reaping happens on this thread as well: it can't come in between.
		if f.children[c.pid] != c {
			return ErrChildEnded
		}
		h.Children = append(h.Children, c.pid)
	}
	left, err := json.Marshal(h)
	if err != nil {
		return err
	}
	exe, err := unix.FcntlInt(r.Exe.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return os.NewSyscallError("fcntl", err)
	}
	defer unix.Close(exe)
	keep := append([]int{h.State, h.Caught}, r.Keep...)
	if isScript(r.Exe) {
		keep = append(keep, exe) // its interpreter opens it
	}
	defer onExec(keep, unix.FD_CLOEXEC)
	if err := onExec(keep, 0); err != nil {
		return err
	}
	mask(unix.SIG_BLOCK)
	defer mask(unix.SIG_UNBLOCK)
	// Lost for a millisecond, which would else be the end of the successor.
	signal.Ignore(syscall.SIGHUP)
	keepSignals(r.Signals, caught)
	env := append(os.Environ(), heirVariable+"="+string(left))
	err = syscall.Exec("/proc/self/fd/"+strconv.Itoa(exe), r.Args, env)
	signal.Notify(r.Signals, syscall.SIGHUP)
	return &os.PathError{Op: "exec", Path: r.Exe.Name(), Err: err}
}

// keepSignals writes down those that have come and were not looked at.
func keepSignals(notified <-chan os.Signal, caught *os.File) {
	// Stop returns when all that the runtime has got is with whom it notifies.
	barrier := make(chan os.Signal, 1)
	signal.Notify(barrier, syscall.SIGUSR1)
	signal.Stop(barrier)
	for {
		select {
		case sig := <-notified:
			_, _ = caught.Write([]byte{byte(sig.(syscall.Signal))})
		default:
			return
		}
	}
}

// onExec sets what becomes of descriptors at an exec. Nobody forks meanwhile: that
// is done on this thread.
func onExec(fds []int, flag int) error {
	var errs []error
	for _, fd := range fds {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, flag); err != nil {
			errs = append(errs, fmt.Errorf("descriptor %d: %w", fd, err))
		}
	}
	return errors.Join(errs...)
}

// inherit takes what Exec has left, before the first child is reaped: as PID 1
// the end of one that isn't known yet would be a stranger's.
func (f *forker) inherit() {
	var h heir
	text, set := os.LookupEnv(heirVariable)
	os.Unsetenv(heirVariable) // Envoy is none of ours
	if !set || json.Unmarshal([]byte(text), &h) != nil || h.PID != os.Getpid() {
		return
	}
	inherited.state = os.NewFile(uintptr(h.State), "inherited state")
	inherited.caught = os.NewFile(uintptr(h.Caught), "caught signals")
	mask(unix.SIG_UNBLOCK) // or our children would begin with it
	inherited.children = map[int]*Process{}
	for _, pid := range h.Children {
		p := &Process{pid: pid, done: make(chan struct{})}
		inherited.children[pid], f.children[pid] = p, p
	}
	// Executed by a descriptor we are called by its number.
	_ = os.WriteFile("/proc/self/comm", []byte(filepath.Base(os.Args[0])), 0)
}

// handled are the signals that mean something to a supervisor.
var handled = []os.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1}

// Release gives a successor the signals that came while it was none yet. Whoever
// is to get them must be notified of them by now.
func Release() {
	if inherited.caught == nil {
		return
	}
	signal.Stop(early)
	for {
		select {
		case sig := <-early:
			_ = syscall.Kill(os.Getpid(), sig.(syscall.Signal))
		default:
			raise(inherited.caught)
			inherited.caught.Close()
			return
		}
	}
}

// raise sends signals to ourselves once more.
func raise(caught *os.File) {
	all, _ := io.ReadAll(io.NewSectionReader(caught, 0, 1<<10))
	for _, sig := range all {
		_ = syscall.Kill(os.Getpid(), syscall.Signal(sig))
	}
}

// mask blocks SIGUSR1 on the calling thread, which is the first of a successor: it
// waits there until somebody is notified of it. Go itself lets through those that
// end a program, whatever mask it is started with.
func mask(how int) {
	var set unix.Sigset_t
	const n = uint(syscall.SIGUSR1) - 1
	set.Val[n/(8*uint(unsafe.Sizeof(set.Val[0])))] |= 1 << (n % (8 * uint(unsafe.Sizeof(set.Val[0]))))
	_ = unix.PthreadSigmask(how, &set, nil) // fails for an unknown how only
}
