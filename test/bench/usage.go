package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// cpuOf is the CPU time a process has used, threads that ended included, in
// nanoseconds: the clock of clock_getcpuclockid(3). /proc/<pid>/stat counts in
// ticks of 10 ms, more than a handoff costs; schedstat forgets ended threads.
func cpuOf(pid int) (time.Duration, error) {
	const wholeProcess = 2 // CPUCLOCK_SCHED
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|wholeProcess), &ts); err != nil {
		return 0, fmt.Errorf("CPU time of process %d: %w", pid, err)
	}
	return time.Duration(ts.Nano()), nil
}

// settledCPU is the CPU time once a process has stood still for a moment: what
// a handoff leaves to be done in the background belongs to it.
func settledCPU(ctx context.Context, pid int) (time.Duration, error) {
	const moment = 5 * time.Millisecond
	last, err := cpuOf(pid)
	for still := 0; err == nil && still < 2; {
		if err = pause(ctx, moment); err != nil {
			break
		}
		var now time.Duration
		if now, err = cpuOf(pid); now == last {
			still++
		} else {
			still, last = 0, now
		}
	}
	return last, err
}

// memory of a process in kB, as /proc/<pid>/status tells it.
type memory struct {
	RSS  int `json:"rss_kb"`
	Anon int `json:"anon_kb"`
	File int `json:"file_kb"`
	Peak int `json:"peak_kb"`
}

func memoryOf(pid int) memory { return parseMemory(fileText(fmt.Sprintf("/proc/%d/status", pid))) }

func parseMemory(status string) (m memory) {
	into := map[string]*int{"VmRSS": &m.RSS, "RssAnon": &m.Anon, "RssFile": &m.File, "VmHWM": &m.Peak}
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		if p := into[name]; p != nil {
			*p, _ = strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(value), " kB"))
		}
	}
	return m
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
