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
	load, ok := lastMinute()
	if !ok {
		return "not known"
	}
	return fmt.Sprintf("%.1f in the last minute", load)
}

func lastMinute() (float64, bool) {
	data, _ := os.ReadFile("/proc/loadavg")
	var load float64
	n, _ := fmt.Sscan(string(data), &load)
	return load, n == 1
}

// overloaded tells whether so many want to run that a load of a fixed rate
// can't be had: operations pile up and fail, hot restart or not.
func overloaded(load float64, cores int) bool { return load >= float64(5*cores) }

// busy is overloaded, now and here, in words; empty when it isn't.
func busy() string {
	load, ok := lastMinute()
	if !ok || !overloaded(load, runtime.NumCPU()) {
		return ""
	}
	return fmt.Sprintf("this machine is overloaded: %.0f want to run on %d cores", load, runtime.NumCPU())
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
