package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func sh(script string) Spec { return Spec{Path: "/bin/sh", Args: []string{"-c", script}} }

func run(t *testing.T, s Spec) Status {
	t.Helper()
	st, err := Run(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestStatusNamesCodeOrSignal(t *testing.T) {
	if got := run(t, sh("exit 7")).String(); got != "exit code 7" {
		t.Error(got)
	}
	if got := run(t, sh("kill -KILL $$")).String(); got != "signal 9 (SIGKILL)" {
		t.Error(got)
	}
}

// Rule 15 and fact 3: a thread that dies must not take a child along, so every
// child's parent thread is the main one.
func TestRule15EveryForkHappensOnTheMainThread(t *testing.T) {
	out := output(t, sh("sleep 5 & wait"), func(p *Process) string {
		for range 200 { // threads that come and go
			go func() { runtime.LockOSThread() }()
		}
		tids, err := filepath.Glob("/proc/self/task/*/children")
		if err != nil || len(tids) == 0 {
			t.Skip("this kernel has no /proc/…/children")
		}
		main, _ := os.ReadFile("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children")
		return string(main)
	})
	if !strings.Contains(out.seen, strconv.Itoa(out.pid)) {
		t.Errorf("pid %d is not among the main thread's children %q", out.pid, out.seen)
	}
}

type seen struct {
	pid  int
	seen string
}

func output(t *testing.T, s Spec, look func(*Process) string) seen {
	t.Helper()
	p, err := Start(s)
	if err != nil {
		t.Fatal(err)
	}
	got := seen{p.Pid(), look(p)}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	p.Wait()
	if err := p.Signal(syscall.SIGKILL); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal after the end: %v", err)
	}
	return got
}

func TestRunThroughTheOpenDescriptor(t *testing.T) {
	dir := t.TempDir()
	for name, body := range map[string]string{"script": "#!/bin/sh\nexit 3\n"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(body), 0o700); err != nil {
			t.Fatal(err)
		}
		exe, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer exe.Close()
		os.Remove(path)
		if st := run(t, Spec{Path: path, Exe: exe}); st.Code != 3 {
			t.Errorf("%s: %v", name, st)
		}
	}
	exe, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	inherit := []*os.File{exe, exe, exe, exe, exe, exe, exe, exe}
	st := run(t, Spec{Path: "/bin/sh", Exe: exe, Args: []string{"-c", "exit 4"}, Inherit: inherit})
	if st.Code != 4 {
		t.Errorf("binary with low descriptor: %v", st)
	}
}

// ForkExec moves its pipe and low descriptors above the highest that it was
// given: whatever numbers are free, they must not hit the executable's.
func TestTheExecutableSurvivesWhicheverDescriptorsAreFree(t *testing.T) {
	exe, err := os.Open("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	var filled []*os.File
	for range 40 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		filled = append(filled, f)
	}
	for _, f := range filled[:5] { // the pipe takes these, and must move up
		f.Close()
	}
	inherit := append(filled[20:], filled[20:]...)
	if st := run(t, Spec{Path: "/bin/sh", Exe: exe, Args: []string{"-c", "exit 4"}, Inherit: inherit}); st.Code != 4 {
		t.Fatal(st)
	}
}

// A signal to our process group must not reach an Envoy: it ends undrained.
func TestChildrenHaveAProcessGroupOfTheirOwn(t *testing.T) {
	p, err := Start(sh("exec sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Signal(syscall.SIGKILL); p.Wait() }()
	if pgid, err := syscall.Getpgid(p.Pid()); err != nil || pgid != p.Pid() {
		t.Errorf("process group %d (%v) of child %d; ours is %d", pgid, err, p.Pid(), syscall.Getpgrp())
	}
}

func TestChildrenInheritOnlyWhatIsNamed(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	st := run(t, Spec{Path: "/bin/sh", Args: []string{"-c", "ls /proc/self/fd | wc -l"}, Stdout: w})
	w.Close()
	buf := make([]byte, 64)
	n, _ := r.Read(buf)
	// 0, 1, 2 and the directory that ls reads
	if got := strings.TrimSpace(string(buf[:n])); st.Code != 0 || got != "4" {
		t.Errorf("descriptors in the child: %s (%v)", got, st)
	}
}

func TestRunKillsWhatOutlivesItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	st, err := Run(ctx, sh("exec sleep 60"))
	if !errors.Is(err, context.DeadlineExceeded) || st.Signal != syscall.SIGKILL {
		t.Errorf("%v, %v", st, err)
	}
}

func TestStartErrorNamesThePath(t *testing.T) {
	_, err := Start(Spec{Path: "/nonexistent/envoy"})
	if err == nil || !strings.Contains(err.Error(), "/nonexistent/envoy") || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Fact 26: of two equals the kernel would end the bigger, the one that serves.
func TestTheKernelIsToldWhoIsExpendable(t *testing.T) {
	for _, expendable := range []bool{false, true} {
		spec := sh("sleep 60")
		spec.Expendable = expendable
		out := output(t, spec, func(p *Process) string {
			score, _ := os.ReadFile("/proc/" + strconv.Itoa(p.Pid()) + "/oom_score_adj")
			return strings.TrimSpace(string(score))
		})
		own, _ := os.ReadFile("/proc/self/oom_score_adj")
		if want := map[bool]string{false: strings.TrimSpace(string(own)), true: "1000"}[expendable]; out.seen != want {
			t.Errorf("expendable %t: score %s, want %s", expendable, out.seen, want)
		}
	}
}
