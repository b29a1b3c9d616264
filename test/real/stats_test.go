package real

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// The three stats that tell how an epoch's numbers travel.
const (
	statGeneration = "server.hot_restart_generation"
	statRequests   = "http.http.downstream_rq_total" // counter
	statHeld       = "cluster.raw.upstream_cx_active"
)

// Fact 10: a gauge holds the parent's value while that lives; of a counter only
// what was counted since the parent's last flush travels. Rates across the
// handoff are right to one flush.
func TestFact10StatsTravelFromTheParent(t *testing.T) {
	t.Parallel()
	const flush, rate = time.Second, 100
	s := newStage(t)
	s.writeFlushing(flush)
	s.start("--parent-shutdown-time", "1h", "--watch-config=false")
	if got := s.stats()[statGeneration]; got != 1 {
		t.Errorf("generation %d of the first epoch", got)
	}
	streams := []*stream{s.stream(), s.stream(), s.stream()}
	s.loadWith(load.Plan{Target: s.Target(), Kinds: []load.KindPlan{{Kind: load.New, Rate: rate}}})
	s.until("a few flushes", func() bool { return s.stats()[statRequests] > 6*rate })
	s.hup()
	before := s.lastOf(1)
	s.await("epoch 1 to serve", node.Serves(1))

	s.until("the parent's gauge to have come over", func() bool { return s.stats()[statHeld] == 3 })
	streams = append(streams, s.stream())
	s.until("our own to be added", func() bool { return s.stats()[statHeld] == 4 })
	for _, st := range streams[:3] {
		st.conn.Close()
	}
	s.await("the parent to end", node.Alone(1))
	s.until("the parent's gauge to be taken back", func() bool { return s.stats()[statHeld] == 1 })

	report := s.unharmed()
	s.residual(int64(report.Started()), before[statRequests], s.settled(statRequests, flush), int64(3*rate*flush/time.Second))
	s.hup()
	s.await("epoch 2 to serve", node.Serves(2))
	if got := s.stats()[statGeneration]; got != 3 {
		t.Errorf("generation %d of the third epoch", got)
	}
	s.flows(streams[3])
	streams[3].conn.Close()
	s.stop()
}

// residual judges what was counted on both sides of a handoff. One flush may be
// missing; thrice that for timers that are late on a busy machine. Had all
// travelled that the parent ever counted, it would be six.
func (s *stage) residual(total, before, after, most int64) {
	s.Helper()
	residual := total - before - after
	s.Logf("%d requests: %d counted by the parent when last asked, %d by its child; residual %d", total, before, after, residual)
	if max(residual, -residual) > most {
		s.Errorf("residual %d, want at most %d", residual, most)
	}
	if after >= total {
		s.Errorf("the child counts %d of %d: all that the parent ever counted has travelled", after, total)
	}
}

func (s *stage) writeFlushing(every time.Duration) {
	s.Helper()
	data, err := s.Bootstrap.YAML()
	if err != nil {
		s.Fatal(err)
	}
	if err := s.WriteRaw(fmt.Appendf(data, "stats_flush_interval: %s\n", every)); err != nil {
		s.Fatal(err)
	}
}

// stats asks for the three; nil when nobody answers.
func (s *stage) stats() map[string]int64 {
	filter := "^(" + regexp.QuoteMeta(statGeneration) + "|" + regexp.QuoteMeta(statRequests) + "|" + regexp.QuoteMeta(statHeld) + ")$"
	text, err := s.admin("/stats?filter=" + filter)
	if err != nil {
		return nil
	}
	stats := map[string]int64{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		stats[name], _ = strconv.ParseInt(value, 10, 64)
	}
	return stats
}

// lastOf are the last stats that a generation has told before its admin was gone.
func (s *stage) lastOf(gen int64) (last map[string]int64) {
	s.Helper()
	s.until("the admin to change hands", func() bool {
		now := s.stats()
		if now[statGeneration] == gen {
			last = now
		}
		return now[statGeneration] > gen
	})
	return last
}

// settled is a stat's value once it has not changed for three flushes.
func (s *stage) settled(name string, flush time.Duration) int64 {
	s.Helper()
	value, since := int64(-1), time.Now()
	s.until(name+" to settle", func() bool {
		if now := s.stats()[name]; now != value {
			value, since = now, time.Now()
		}
		return time.Since(since) > 3*flush
	})
	return value
}
