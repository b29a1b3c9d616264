package load

import (
	"fmt"
	"os"
	"runtime"
	"slices"
)

// ForThisMachine is the plan with lower rates on a machine that has other work
// for each of its CPUs: a load that it can't carry shows timeouts, not handoffs.
func (p Plan) ForThisMachine() Plan {
	var busy float64
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		_, _ = fmt.Sscan(string(text), &busy) // unreadable: not busy
	}
	share := min(1, max(0.1, 2*float64(runtime.NumCPU())/max(busy, 1)))
	p.Kinds = slices.Clone(p.Kinds)
	for i, k := range p.Kinds {
		p.Kinds[i].Rate = max(k.Rate*share, min(k.Rate, 1))
	}
	return p
}
