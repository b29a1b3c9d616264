package main

import (
	"context"
	"strings"
	"time"

	"aether.internal/test/load"
)

// see looks at the supervisor's status and log, and at the load.
func (s *stage) see(ctx context.Context) sight {
	now := &s.seen.sight
	now.at = time.Now()
	if s.run == nil {
		return *now
	}
	s.seeLog()
	s.seeLoad()
	select {
	case <-s.run.Done():
		code, err := s.run.ExitCode(ctx)
		now.ended, now.code = err == nil, code
		now.status.Epochs = nil
		return *now
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if st, err := s.run.Status(ctx); err == nil {
		now.status, now.tag = st, ""
		if e := st.Of(st.Serving); e != nil {
			now.tag = s.tags[e.ConfigHash]
		}
	}
	return *now
}

func (s *stage) seeLog() {
	lines := s.run.Lines()
	for _, l := range lines[s.seen.lines:] {
		switch {
		case l.Source != "":
		case strings.HasPrefix(l.Message, saysRefused):
			s.seen.log.refused++
		case strings.HasPrefix(l.Message, saysTakenBack):
			s.seen.log.takenBack++
		case strings.HasPrefix(l.Message, saysUnchanged):
			s.seen.log.unchanged++
		}
	}
	s.seen.lines = len(lines)
}

// loadGlance is how often the load is asked: its answer is the whole timeline.
const loadGlance = 100 * time.Millisecond

func (s *stage) seeLoad() {
	if s.load == nil {
		return
	}
	select {
	case <-s.rest: // nil, and never ready, until the load is being stopped
		s.seen.loadEnded = true
	default:
		if time.Since(s.seen.loadAt) < loadGlance {
			return
		}
	}
	r := s.load.Snapshot()
	s.seen.loadAt, s.seen.done, s.seen.failed, s.seen.rate = time.Now(), r.OK(), r.Failures(), lastSecond(r)
}

// lastSecond is the rate over the last whole second of the timeline.
func lastSecond(r load.Report) float64 {
	now, count := r.Duration.Milliseconds(), 0
	var first, last int64 = -1, 0
	for _, b := range r.Timeline {
		if b.OffsetMS >= now-1000-width.Milliseconds() && b.OffsetMS+width.Milliseconds() <= now {
			if first < 0 {
				first = b.OffsetMS
			}
			last = b.OffsetMS + width.Milliseconds()
			count += b.OK + b.Failed
		}
	}
	if first < 0 {
		return 0
	}
	return float64(count) * 1000 / float64(last-first)
}
