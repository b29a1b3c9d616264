package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestHistogramIsCloseToSortedSamples(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, scale := range []time.Duration{100 * time.Microsecond, 10 * time.Millisecond, 10 * time.Second} {
		var h histogram
		var all []time.Duration
		for range 10_000 {
			d := time.Duration(random.ExpFloat64() * float64(scale))
			h.add(d)
			all = append(all, d)
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			want := all[int(q*float64(len(all)))-1]
			if got := h.quantile(q); got < want || got > want+want/50+time.Microsecond {
				t.Errorf("scale %v, quantile %g: %v, want %v", scale, q, got, want)
			}
		}
	}
}

func TestHistogramAtItsEdges(t *testing.T) {
	var h histogram
	if h.quantile(0.99) != 0 {
		t.Error("an empty one has no latency")
	}
	for _, d := range []time.Duration{-time.Second, 0, 24 * time.Hour} {
		h.add(d)
	}
	if h.total != 3 || h.max != 24*time.Hour {
		t.Errorf("total %d, max %v", h.total, h.max)
	}
	for us := 0; us < 1<<20; us += 97 {
		d := time.Duration(us) * time.Microsecond
		if top := ceiling(slot(d)); top <= d || top > d+d/64+time.Microsecond {
			t.Fatalf("%v is in a slot that ends at %v", d, top)
		}
	}
	if last := slot(24 * time.Hour); last != len(h.counts)-1 {
		t.Errorf("the longest is in slot %d of %d", last, len(h.counts))
	}
}

func TestTimeline(t *testing.T) {
	tl := timeline{width: 100 * time.Millisecond}
	at := func(ms int, epoch string, err error) result {
		return result{ended: time.Duration(ms) * time.Millisecond, err: err, notes: notes{epoch: epoch}}
	}
	for i := range 100 {
		tl.add(at(50, "v1", nil), time.Duration(i+1)*time.Microsecond)
	}
	tl.add(at(350, "v2", nil), 7*time.Millisecond)
	tl.add(at(399, "", errRetried), 0)
	tl.add(at(10, "v1", nil), time.Second)     // came late, and still counts
	tl.add(at(5000, "v3", nil), time.Second)   // now the first bucket is settled …
	tl.add(at(20, "v1", nil), 2*time.Second)   // … so this one changes its count alone
	tl.add(at(4999, "v2", nil), 2*time.Second) // a neighbour
	if n := len(tl.buckets); n != 51 {
		t.Fatalf("%d buckets", n)
	}
	first := tl.buckets[0]
	if first.OK != 102 || first.Epochs["v1"] != 102 || first.P50US != 51 || first.P99US != 100 {
		t.Errorf("first bucket: %+v", first)
	}
	if b := tl.buckets[3]; b.OffsetMS != 300 || b.OK != 1 || b.Failed != 1 || b.P99US != 7000 || len(b.Epochs) != 1 {
		t.Errorf("fourth bucket: %+v", b)
	}
	if b := tl.buckets[2]; b.OK+b.Failed != 0 || b.OffsetMS != 200 {
		t.Errorf("a bucket without results: %+v", b)
	}
	kept := 0
	for _, s := range tl.samples {
		if s != nil {
			kept++
		}
	}
	if kept > settled {
		t.Errorf("samples of %d buckets are kept", kept)
	}
}
