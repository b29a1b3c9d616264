package hotrestart

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// pinConcurrency chooses the number of workers for all epochs: fewer than
// before resets connections (fact 9), and Envoy's own default follows the CPU
// limit of the moment. flag and extra are --concurrency of ours and among
// Envoy's arguments, 0 when not given.
func pinConcurrency(flag, extra int) (int, error) {
	switch {
	case flag > 0 && extra > 0 && flag != extra:
		return 0, fmt.Errorf("--concurrency says %d and the Envoy arguments say --concurrency %d; keep one of them", flag, extra)
	case flag > 0:
		return flag, nil
	case extra > 0:
		return extra, nil
	}
	return usableCPUs("/"), nil
}

// usableCPUs is the smaller of the CPU affinity and the cgroup's limit,
// rounded up, at least 1. root is "/" but in tests.
func usableCPUs(root string) int {
	var set unix.CPUSet
	cpus := 1
	if unix.SchedGetaffinity(0, &set) == nil {
		cpus = set.Count()
	}
	if limit, ok := cgroupCPUs(root); ok {
		cpus = int(math.Ceil(min(limit, float64(cpus))))
	}
	return max(cpus, 1)
}

// cgroupCPUs is the CPU limit of our cgroup, v2 or v1; false when there is none.
func cgroupCPUs(root string) (float64, bool) {
	if quota, period, found := strings.Cut(readTrimmed(root, "sys/fs/cgroup/cpu.max"), " "); found {
		return ratio(quota, period)
	}
	return ratio(readTrimmed(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us"), readTrimmed(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us"))
}

func ratio(quota, period string) (float64, bool) {
	q, err1 := strconv.ParseFloat(quota, 64) // "max" and -1 mean no limit
	p, err2 := strconv.ParseFloat(period, 64)
	limit := q / p
	if err1 != nil || err2 != nil || !(q > 0 && p > 0) || math.IsInf(limit, 0) || math.IsNaN(limit) {
		return 0, false
	}
	return limit, true
}

func readTrimmed(root, name string) string {
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
