package hotrestart

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// story is a run as people read it.
type story struct{ lines []string }

func (s *story) add(at time.Duration, who, what string) {
	s.lines = append(s.lines, fmt.Sprintf("%3d  %9.3fs  %-10s  %s", len(s.lines)+1, at.Seconds(), who, what))
}

// Lines of a long story that are printed: how it began, and how it ended.
const firstLines, lastLines = 70, 30

func (s *story) String() string {
	lines := s.lines
	if cut := len(lines) - firstLines - lastLines; cut > 0 {
		gap := fmt.Sprintf("     … %d lines …", cut)
		lines = slices.Concat(lines[:firstLines], []string{gap}, lines[len(lines)-lastLines:])
	}
	return strings.Join(lines, "\n")
}

// retold is a failing schedule without the deeds it doesn't need, as a story.
func retold(s schedule, decide func(State, Event) (State, []Action), tweak func(*world), broken *violation) string {
	fails := func(deeds []deed) bool {
		v := schedule{s.seed, deeds, s.pods}.play(decide, tweak, nil)
		return v != nil && v.rule == broken.rule
	}
	short := schedule{s.seed, shortened(s.deeds, fails), s.pods}
	told := &story{}
	v := short.play(decide, tweak, told)
	return fmt.Sprintf("seed %d breaks %q: %s\n%d of %d deeds are needed; as a fuzz corpus entry: uint64(%d) []byte(%q)\n%s",
		s.seed, v.rule, v.how, len(short.deeds), len(s.deeds), s.seed, short.encoded(), told)
}

// shortened drops what is not needed to fail: halves first, then quarters, at
// last single deeds (delta debugging).
func shortened(deeds []deed, fails func([]deed) bool) []deed {
	for size := max(len(deeds)/2, 1); ; size = max(size/2, 1) {
		dropped := false
		for from := 0; from < len(deeds); {
			without := append(deeds[:from:from], deeds[min(from+size, len(deeds)):]...)
			if fails(without) {
				deeds, dropped = without, true
			} else {
				from += size
			}
		}
		if size == 1 && !dropped {
			return deeds
		}
	}
}
