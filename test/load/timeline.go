package load

import (
	"slices"
	"time"
)

// settled is how many buckets back latencies are kept: a result may come to
// the collector a little after a later one.
const settled = 10

// timeline is the run, bucket by bucket.
type timeline struct {
	width   time.Duration
	buckets []Bucket
	// samples are the latencies of the newest buckets; older ones have only
	// their percentiles, so that a long run needs no more memory.
	samples [][]time.Duration
}

func (t *timeline) add(r result, latency time.Duration) {
	i := int(r.ended / t.width)
	t.growTo(i)
	b := &t.buckets[i]
	if r.epoch != "" {
		if b.Epochs == nil {
			b.Epochs = map[string]int{}
		}
		b.Epochs[r.epoch]++
	}
	if r.err != nil {
		b.Failed++
		return
	}
	b.OK++
	if s := t.samples[i]; s != nil || i >= len(t.buckets)-settled {
		t.samples[i] = insert(s, latency)
		b.P50US = percentile(t.samples[i], 50).Microseconds()
		b.P99US = percentile(t.samples[i], 99).Microseconds()
	}
}

func (t *timeline) growTo(i int) {
	for len(t.buckets) <= i {
		n := len(t.buckets)
		t.buckets = append(t.buckets, Bucket{OffsetMS: (time.Duration(n) * t.width).Milliseconds()})
		t.samples = append(t.samples, nil)
		if n >= settled {
			t.samples[n-settled] = nil
		}
	}
}

func insert(sorted []time.Duration, d time.Duration) []time.Duration {
	at, _ := slices.BinarySearch(sorted, d)
	return slices.Insert(sorted, at, d)
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)*p+99)/100-1] // the rank is rounded up
}
