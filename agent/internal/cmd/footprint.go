package cmd

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetProgram unmaps what the start has touched of our own program's code. The
// pages stay in the kernel's cache for as long as there is room, and what is needed
// again is mapped again by a fault of a microsecond. Only code is given up: what
// else can't be written to may have been relocated before it was made so (RELRO,
// in a build with cgo), and the file doesn't have that content.
func forgetProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		var low, high uintptr
		var mode string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &low, &high, &mode); err != nil || mode[:3] != "r-x" || !strings.HasSuffix(strings.TrimSpace(line), " "+self) {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, low, high-low, unix.MADV_DONTNEED); errno != 0 {
			return os.NewSyscallError("madvise", errno)
		}
	}
	return nil
}
