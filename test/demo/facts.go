package main

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"aether.internal/test/demo/report"
)

// facts are what somebody who sees the report needs to compare it with
// another one.
func facts(s *stage) []report.Fact {
	return []report.Fact{
		{Name: "Envoy", Text: s.envoys.upgrade()},
		{Name: "Go", Text: runtime.Version()},
		{Name: "kernel", Text: kernel()},
		{Name: "machine", Text: fmt.Sprintf("%s, %d cores, %s", processor(), runtime.NumCPU(), memory())},
		// Who shares the machine makes most of what is slow.
		{Name: "load average", Text: loadAverage()},
	}
}

func kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "not known"
	}
	return unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:]) + " " + unix.ByteSliceToString(u.Machine[:])
}

func processor() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	return cmp.Or(field(string(data), "model name"), runtime.GOARCH)
}

func memory() string {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return "memory not known"
	}
	return fmt.Sprintf("%.0f GiB", float64(info.Totalram)*float64(info.Unit)/(1<<30))
}

func loadAverage() string {
	data, _ := os.ReadFile("/proc/loadavg")
	words := strings.Fields(string(data))
	if len(words) == 0 {
		return "not known"
	}
	return words[0] + " in the last minute"
}

// field is the first "name : value" of a /proc file.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
