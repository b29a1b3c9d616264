package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// act makes this test binary one of the two programs below.
const act = "TEST_EXEC_ACT"

func TestMain(m *testing.M) {
	switch os.Getenv(act) {
	case "predecessor":
		Main(predecessor)
	case "successor":
		Main(successor)
	}
	Main(m.Run)
}

// predecessor has two children, one of which ends while it is replaced, and is
// sent signals at that time.
func predecessor() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1)
	r, w, err := os.Pipe()
	if err != nil {
		return fail("pipe", err)
	}
	// It ends when the pipe's other end closes, which is at the exec.
	goes, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", "read x <&3; exit 5"}, Inherit: []*os.File{r}})
	if err != nil {
		return fail("start", err)
	}
	r, w2, err := os.Pipe()
	if err != nil {
		return fail("pipe", err)
	}
	stays, err := Start(Spec{Path: "/bin/sh", Args: []string{"-c", "trap 'exit 6' TERM; echo ready; while :; do sleep 0.05; done"}, Stdout: w2})
	if err != nil {
		return fail("start", err)
	}
	if _, err := r.Read(make([]byte, 6)); err != nil {
		return fail("read", err)
	}
	fd, err := unix.MemfdCreate("state", unix.MFD_CLOEXEC)
	if err != nil {
		return fail("memfd", err)
	}
	state := os.NewFile(uintptr(fd), "state")
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return fail("open", err)
	}
	if _, err := fmt.Fprintf(state, "%d %d %d", os.Getpid(), goes.Pid(), stays.Pid()); err != nil {
		return fail("write", err)
	}

	// One that can't be executed: everything stays as it is.
	nothing, _ := os.Open(os.DevNull)
	if err := Exec(Replacement{Exe: nothing, Args: os.Args, State: state, Signals: signals}); err == nil {
		return fail("exec of /dev/null", errors.New("it returned nil"))
	}
	if flags, err := unix.FcntlInt(state.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		return fail("after a failed exec", fmt.Errorf("flags %d, %w", flags, err))
	}
	// Nor is a signal lost.
	_ = syscall.Kill(os.Getpid(), syscall.SIGHUP)
	if sig := <-signals; sig != syscall.SIGHUP {
		return fail("after a failed exec", fmt.Errorf("%v", sig))
	}
	signals <- syscall.SIGTERM // as if it had come just now
	_ = syscall.Kill(os.Getpid(), syscall.SIGUSR1)
	os.Setenv(act, "successor")
	children := []*Process{goes, stays}
	defer w.Close()
	return fail("exec", Exec(Replacement{Exe: exe, Args: os.Args, State: state, Keep: []int{int(r.Fd())}, Children: children, Signals: signals}))
}

func fail(what string, err error) int {
	fmt.Println(what, err)
	return 1
}

func successor() int {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGTERM, syscall.SIGUSR1)
	state := Inherited()
	if state == nil {
		return fail("inherited", errors.New("nothing"))
	}
	text, err := io.ReadAll(io.NewSectionReader(state, 0, 100))
	if err != nil {
		return fail("state", err)
	}
	var pid, goes, stays int
	if _, err := fmt.Sscan(string(text), &pid, &goes, &stays); err != nil || pid != os.Getpid() {
		return fail("state "+string(text), err)
	}
	if _, left := os.LookupEnv(heirVariable); left {
		return fail("environment", errors.New("the variable is left"))
	}
	select {
	case sig := <-signals:
		return fail("before release", fmt.Errorf("%v", sig))
	default:
	}
	Release()
	got := map[os.Signal]bool{<-signals: true, <-signals: true}
	if !got[syscall.SIGTERM] || !got[syscall.SIGUSR1] {
		return fail("signals", fmt.Errorf("%v", got))
	}
	if st := Child(goes).Wait(); st.Code != 5 {
		return fail("the child that ended", errors.New(st.String()))
	}
	if err := Child(stays).Signal(syscall.SIGTERM); err != nil {
		return fail("signal", err)
	}
	if st := Child(stays).Wait(); st.Code != 6 {
		return fail("the child that stayed", errors.New(st.String()))
	}
	// What it starts can be ended: the mask that it inherited is not passed on.
	status, err := os.ReadFile("/proc/self/comm")
	if err != nil || strings.TrimSpace(string(status)) == "" {
		return fail("comm", err)
	}
	p, err := Start(Spec{Path: "/bin/sleep", Args: []string{"60"}})
	if err != nil {
		return fail("start", err)
	}
	_ = p.Signal(syscall.SIGTERM)
	if st := p.Wait(); st.Signal != syscall.SIGTERM {
		return fail("its own child", errors.New(st.String()))
	}
	fmt.Println("well done by", os.Getpid())
	return 0
}

// Rule 15: an exec of ourselves keeps children, descriptors and signals.
func TestRule15AnExecOfOurselvesKeepsChildrenDescriptorsAndSignals(t *testing.T) {
	s := Spec{Path: os.Args[0], Env: append(os.Environ(), act+"=predecessor")}
	out, errs, st, err := Output(t.Context(), s, 4096)
	if err != nil || st.Code != 0 || !strings.Contains(string(out), "well done") {
		t.Errorf("%v %v\n%s%s", err, st, out, errs)
	}
}

func TestNothingIsInheritedByWhoWasJustStarted(t *testing.T) {
	if Inherited() != nil || Child(os.Getpid()) != nil {
		t.Error("inherited from nobody")
	}
	// Somebody else's variable means nothing to us.
	t.Setenv(heirVariable, `{"pid":`+strconv.Itoa(os.Getpid()+1)+`,"state":0}`)
	(&forker{}).inherit()
	if _, left := os.LookupEnv(heirVariable); left || Inherited() != nil {
		t.Error("taken from another process")
	}
}

func TestAnExecWithAChildThatEndedIsRefused(t *testing.T) {
	p, err := Start(sh("exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	exe, err := os.Open("/bin/false")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	if err := Exec(Replacement{Exe: exe, State: exe, Children: []*Process{p}}); !errors.Is(err, ErrChildEnded) {
		t.Error(err)
	}
}
