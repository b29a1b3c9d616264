package drain

import (
	"strings"
	"testing"
	"time"
)

const s = time.Second

func TestPlan(t *testing.T) {
	for _, c := range []struct{ wish, want Times }{
		{Times{60 * s, Derive, Derive, Derive}, Times{60 * s, 13 * s, 15 * s, 27 * s}},
		{Times{30 * s, Derive, Derive, Derive}, Times{30 * s, 7 * s, 7 * s, 14 * s}},
		{Times{5 * s, Derive, Derive, Derive}, Times{5 * s, 1 * s, 1 * s, 2 * s}},
		{Times{600 * s, Derive, Derive, Derive}, Times{600 * s, 13 * s, 207 * s, 375 * s}},
		{Times{60 * s, 0, Derive, Derive}, Times{60 * s, 0, 19 * s, 36 * s}},
		{Times{60 * s, 13 * s, 15 * s, Derive}, Times{60 * s, 13 * s, 15 * s, 27 * s}},
		{Times{60 * s, 13 * s, Derive, 10 * s}, Times{60 * s, 13 * s, 32 * s, 10 * s}},
		{Times{60 * s, 1 * s, 2 * s, 3 * s}, Times{60 * s, 1 * s, 2 * s, 3 * s}},
	} {
		got, err := Plan(c.wish)
		if err != nil || got != c.want {
			t.Errorf("%v: %v, %v; want %v", c.wish, got, err, c.want)
		}
	}
}

func TestPlanRefusesWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		wish Times
		want string
	}{
		{Times{60 * s, 13 * s, 40 * s, 10 * s}, "drain delay 13s, Envoy's drain window 40s, drain timeout 10s and 5s for the marker and Envoy's own end are 1m8s together: more than the pod's grace period of 1m0s"},
		{Times{30 * s, 28 * s, Derive, Derive}, "drain delay 28s, Envoy's drain window 1s, drain timeout 1s and 2s"},
		{Times{30 * s, 40 * s, Derive, Derive}, "more than the pod's grace period of 30s"},
		{Times{30 * s, Derive, 30 * s, Derive}, "more than"},
		{Times{30 * s, Derive, Derive, 30 * s}, "more than"},
		{Times{30 * s, -2, Derive, Derive}, "drain delay -2ns is negative"},
		{Times{4 * s, Derive, Derive, Derive}, "grace period 4s: a drain needs 5s at least"},
		{Times{}, "grace period 0s"},
	} {
		if got, err := Plan(c.wish); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, %v; want %q", c.wish, got, err, c.want)
		}
	}
}
