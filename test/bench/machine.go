package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine is where the numbers come from.
type machine struct {
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Kernel string `json:"kernel"`
	Go     string `json:"go"`
	Before loads  `json:"load_before"`
	After  loads  `json:"load_after"`
}

// loads are the load averages of the last 1, 5 and 15 minutes.
type loads [3]float64

func describeMachine() machine {
	return machine{
		CPU: cpuModel(fileText("/proc/cpuinfo")), CPUs: runtime.NumCPU(),
		Kernel: strings.TrimSpace(fileText("/proc/sys/kernel/osrelease")),
		Go:     runtime.Version(), Before: load(),
	}
}

func (m machine) String() string {
	s := fmt.Sprintf("machine: %s, %d CPUs, Linux %s, %s; load average %.2f %.2f %.2f",
		m.CPU, m.CPUs, m.Kernel, m.Go, m.Before[0], m.Before[1], m.Before[2])
	if !m.quiet() {
		s += "\nthe machine is busy: times are noisy, a quiet machine is wanted"
	}
	return s
}

// quiet allows what the benchmark itself adds.
func (m machine) quiet() bool { return m.Before[0] < 0.5*float64(m.CPUs) }

func load() loads { return parseLoad(fileText("/proc/loadavg")) }

func parseLoad(text string) (l loads) {
	fields := strings.Fields(text)
	for i := range min(len(l), len(fields)) {
		l[i], _ = strconv.ParseFloat(fields[i], 64)
	}
	return l
}

func cpuModel(cpuinfo string) string {
	for line := range strings.Lines(cpuinfo) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// fileText is empty where the file can't be read: a line of the report is all
// that hangs on it.
func fileText(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}
