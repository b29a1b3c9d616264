package drain

import (
	"fmt"
	"time"
)

// Times of a drain, each at most: every phase but the delay ends as soon as it
// can. All come from the first.
type Times struct {
	Grace   time.Duration // the pod's terminationGracePeriodSeconds
	Delay   time.Duration // not ready, serving as ever: endpoints and proxies learn of it
	Window  time.Duration // Envoy tells its clients to go, and is counted
	Timeout time.Duration // what stands beside Envoy finishes
}

// Derive in the place of a time says that it follows from the others.
const Derive time.Duration = -1

// DefaultGrace is the grace period that the others' defaults belong to: with it
// they are 13s, 15s and 27s.
const DefaultGrace = 60 * time.Second

const (
	leastGrace = 5 * time.Second
	mostDelay  = 13 * time.Second // endpoints are known everywhere by then; longer helps nobody
)

// Reserve is what is kept of the grace period for the marker, the waiter and
// Envoy's own end: 5 s of a minute, at least 1 s.
func (t Times) Reserve() time.Duration {
	return min(max((t.Grace/12).Truncate(time.Second), time.Second), 5*time.Second)
}

// Plan fills in what is to be derived, and refuses what doesn't fit into the
// grace period: the kubelet would kill in the middle of it.
func Plan(wish Times) (Times, error) {
	t := wish
	if t.Grace < leastGrace {
		return Times{}, fmt.Errorf("grace period %v: a drain needs %v at least", t.Grace, leastGrace)
	}
	if t.Delay == Derive {
		t.Delay = min(mostDelay, (t.Grace / 4).Truncate(time.Second))
	}
	rest := t.Grace - t.Reserve() - t.Delay
	switch {
	case t.Window == Derive && t.Timeout == Derive:
		t.Window = (rest * 15 / 42).Truncate(time.Second) // of a minute: 15 s and 27 s
		t.Timeout = rest - t.Window
	case t.Window == Derive:
		t.Window = rest - t.Timeout
	case t.Timeout == Derive:
		t.Timeout = rest - t.Window
	}
	return t, t.check(wish)
}

func (t Times) check(wish Times) error {
	for _, part := range []struct {
		name       string
		wish, time time.Duration
	}{{"drain delay", wish.Delay, t.Delay}, {"Envoy's drain window", wish.Window, t.Window}, {"drain timeout", wish.Timeout, t.Timeout}} {
		if part.wish < 0 && part.wish != Derive {
			return fmt.Errorf("%s %v is negative", part.name, part.wish)
		}
	}
	window, timeout := atLeast(wish.Window, t.Window), atLeast(wish.Timeout, t.Timeout)
	sum := t.Delay + window + timeout + t.Reserve()
	if sum <= t.Grace {
		return nil
	}
	return fmt.Errorf("drain delay %v, Envoy's drain window %v, drain timeout %v and %v for the marker and Envoy's own end are %v together: more than the pod's grace period of %v",
		t.Delay, window, timeout, t.Reserve(), sum, t.Grace)
}

// atLeast is what a time counts in the sum: a derived one has no use below a
// second, one that was asked for may be nothing.
func atLeast(wish, derived time.Duration) time.Duration {
	if wish == Derive {
		return max(derived, time.Second)
	}
	return wish
}
