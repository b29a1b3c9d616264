package cluster

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// rates is what a scraper makes of the stats listener: the rate of a counter that
// starts anew with each epoch, as Prometheus computes it.
type rates struct {
	c       *scene
	end     chan struct{}
	ended   chan struct{}
	samples []sample
	misses  int
}

type sample struct {
	at    time.Time
	value float64
}

const (
	counter     = `envoy_http_downstream_rq_total{envoy_http_conn_manager_prefix="http"} `
	scrapeEvery = time.Second
	window      = 15 // samples of a rate
)

// exported is what the stats listener tells.
func (r *release) exported() (string, error) {
	resp, err := afresh.Get("http://" + r.stats + "/stats/prometheus")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// watchRates scrapes once a second until judge.
func (c *scene) watchRates() *rates {
	r := &rates{c: c, end: make(chan struct{}), ended: make(chan struct{})}
	go func() { // joined by judge
		defer close(r.ended)
		tick := time.NewTicker(scrapeEvery)
		defer tick.Stop()
		for {
			select {
			case <-r.end:
				return
			case <-tick.C:
				r.scrape()
			}
		}
	}()
	return r
}

func (r *rates) scrape() {
	text, err := r.c.exported()
	_, rest, found := strings.Cut(text, counter)
	value, bad := strconv.ParseFloat(strings.TrimSpace(strings.SplitN(rest, "\n", 2)[0]), 64)
	if err != nil || !found || bad != nil {
		r.misses++ // the admin is in other hands for a moment
		return
	}
	r.samples = append(r.samples, sample{time.Now(), value})
}

// judge wants every rate over a window to be near the whole's: no dip, no leap. A
// handoff may lose what the parent counted since its last flush.
func (r *rates) judge() {
	r.c.Helper()
	close(r.end)
	<-r.ended
	all := rate(r.samples)
	var low, high float64
	for i := 0; i+window <= len(r.samples); i++ {
		one := rate(r.samples[i : i+window])
		if i == 0 {
			low, high = one, one
		}
		low, high = min(low, one), max(high, one)
	}
	told := fmt.Sprintf("%d scrapes, %d without an answer; rate %.1f a second, over %d s from %.1f to %.1f", len(r.samples), r.misses, all, window, low, high)
	r.c.Log(told)
	if len(r.samples) < 2*window || r.misses*10 > len(r.samples) || low < all*0.7 || high > all*1.3 {
		r.c.Errorf("not continuous: %s", told)
	}
}

// rate is increase over time; a counter that fell has started from 0.
func rate(samples []sample) float64 {
	if len(samples) < 2 {
		return 0
	}
	increase := 0.0
	for i := 1; i < len(samples); i++ {
		step := samples[i].value - samples[i-1].value
		if step < 0 {
			step = samples[i].value
		}
		increase += step
	}
	return increase / samples[len(samples)-1].at.Sub(samples[0].at).Seconds()
}
