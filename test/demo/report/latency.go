package report

import (
	"strings"

	"aether.internal/test/load"
)

// latencyPanel is the median and the 99th percentile of each bucket, by their
// logarithm.
type latencyPanel struct {
	decades
	Ticks    []tick
	P50, P99 string // paths
}

func (r Run) latencyPanel(b box, t timeline) latencyPanel {
	var low, high int64
	for _, b := range r.Load.Timeline {
		if b.OK > 0 && (low == 0 || b.P50US < low) {
			low = b.P50US
		}
		high = max(high, b.P99US)
	}
	p := latencyPanel{decades: newDecades(b, low, high)}
	p.Ticks = p.ticks()
	p.P50 = r.line(t, p.decades, func(b load.Bucket) int64 { return b.P50US })
	p.P99 = r.line(t, p.decades, func(b load.Bucket) int64 { return b.P99US })
	return p
}

// line has gaps where nothing succeeded.
func (r Run) line(t timeline, d decades, of func(load.Bucket) int64) string {
	var path strings.Builder
	command := "M"
	for i, b := range r.Load.Timeline {
		if b.OK == 0 {
			command = "M"
			continue
		}
		x := (r.x(t, i) + r.x(t, i+1)) / 2
		path.WriteString(command + x.String() + " " + d.y(of(b)).String())
		command = "L"
	}
	return path.String()
}
