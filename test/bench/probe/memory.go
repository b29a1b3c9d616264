package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// peak is the most resident memory that a program has had by its exit, in kB. Its
// rusage would have ours as well, from between fork and exec: so it is stopped at
// its exit and looked at.
func peak(line []string) (float64, error) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	cmd := exec.Command(line[0], line[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid := cmd.Process.Pid
	defer func() {
		_ = cmd.Process.Kill()
		_ = syscall.PtraceDetach(pid) // it is stopped, and would stay so
		_ = cmd.Wait()
	}()
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil { // at its exec
		return 0, err
	}
	const traceExit = 0x40 // PTRACE_O_TRACEEXIT
	if err := syscall.PtraceSetOptions(pid, traceExit); err != nil {
		return 0, err
	}
	for signal := 0; ; signal = int(ws.StopSignal()) {
		if err := syscall.PtraceCont(pid, signal); err != nil {
			return 0, err
		}
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil {
			return 0, err
		}
		const exits = 6 // PTRACE_EVENT_EXIT
		switch {
		case !ws.Stopped():
			return 0, errors.New("it ended unseen")
		case ws.TrapCause() == exits:
			return highWater(pid)
		}
	}
}

func highWater(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(string(status), "VmHWM:")
	value, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, err := strconv.ParseFloat(value, 64)
	if !found || err != nil {
		return 0, errors.New("no VmHWM in its status")
	}
	return kb, nil
}
