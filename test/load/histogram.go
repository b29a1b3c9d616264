package load

import (
	"math"
	"math/bits"
	"time"
)

// histogram counts latencies in microseconds with a resolution of 1/64:
// exact to 128 µs, then 64 steps for each doubling. Memory doesn't grow.
type histogram struct {
	counts [27 * 64]uint32 // to 2^32 µs, over an hour
	total  int
	max    time.Duration
}

func (h *histogram) add(d time.Duration) {
	h.counts[slot(d)]++
	h.total++
	h.max = max(h.max, d)
}

// quantile is an upper bound of the q-th of all latencies; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	want, seen := int(math.Ceil(q*float64(h.total))), 0
	for i, n := range h.counts {
		if seen += int(n); seen >= want {
			return min(ceiling(i), h.max)
		}
	}
	return h.max
}

func slot(d time.Duration) int {
	us := min(uint64(max(d, 0).Microseconds()), 1<<32-1)
	shift := max(bits.Len64(us)-7, 0) // so that us>>shift is below 128
	return shift*64 + int(us>>shift)
}

// ceiling is what all latencies in slot i are below.
func ceiling(i int) time.Duration {
	shift := max(i/64-1, 0)
	return time.Duration((uint64(i-shift*64)+1)<<shift) * time.Microsecond
}
