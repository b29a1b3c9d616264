package envoy

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strings"
)

// Connections is the number of downstream connections of all listeners, TCP
// proxies' and QUIC's included. Admin's own, internal listeners' and per-worker
// twins are not counted (B32, B33). While a parent lives, the parent's are
// included in its child's number (fact 10). UDP sessions don't show.
//
// An answer that doesn't prove its number is an error, never 0: somebody may
// be ended on the strength of a 0.
func (a *Admin) Connections(ctx context.Context) (n int, err error) {
	err = a.oneEpoch(ctx, func(s *session) (err error) {
		n, err = s.connections(ctx)
		return err
	})
	return n, err
}

func (s *session) connections(ctx context.Context) (int, error) {
	gauges, err := s.gauges(ctx, `^listener\..*\.downstream_cx_active$`)
	if err != nil {
		return 0, err
	}
	if _, ok := gauges["listener.admin"+activeSuffix]; !ok {
		return 0, fmt.Errorf("admin %s: no listener gauges in /stats: is there a stats_matcher that hides them?", s.admin.address)
	}
	if sum, found := sumConnections(gauges); found {
		return sum, nil
	}
	listeners, err := s.listeners(ctx)
	if err != nil {
		return 0, err
	}
	for _, l := range listeners {
		if !l.Internal {
			return 0, fmt.Errorf("admin %s: listener %q is active but has no gauge in /stats: is there a stats_matcher that hides it?",
				s.admin.address, l.Name)
		}
	}
	return 0, nil
}

const activeSuffix = ".downstream_cx_active"

// sumConnections adds up what counts; found tells whether anything did.
func sumConnections(gauges map[string]int) (sum int, found bool) {
	for name, value := range gauges {
		prefix := strings.TrimSuffix(name, activeSuffix)
		switch {
		case prefix == "listener.admin" || prefix == "listener.admin.main_thread":
		case strings.HasPrefix(prefix, "listener.envoy_internal_"):
		case isWorkerTwin(gauges, prefix):
		default:
			sum, found = sum+value, true
		}
	}
	return sum, found
}

// isWorkerTwin tells "listener.A.worker_0" from a listener whose stat_prefix
// happens to end that way: the twin's listener is there as well.
func isWorkerTwin(gauges map[string]int, prefix string) bool {
	dot := strings.LastIndexByte(prefix, '.')
	number, ok := strings.CutPrefix(prefix[dot+1:], "worker_")
	if !ok || strings.Trim(number, "0123456789") != "" {
		return false
	}
	_, twin := gauges[prefix[:dot]+activeSuffix]
	return twin
}

// gauges reads the gauges whose name matches the regular expression.
func (s *session) gauges(ctx context.Context, filter string) (map[string]int, error) {
	gauges := map[string]int{}
	q := query{path: "/stats?format=json&type=Gauges&filter=" + url.QueryEscape(filter), limit: listLimit}
	err := s.get(ctx, q, func(r answer) error {
		return r.each("stats", func(raw json.RawMessage) error {
			var gauge struct {
				Name  string `json:"name"`
				Value *int   `json:"value"`
			}
			if err := json.Unmarshal(raw, &gauge); err != nil {
				return err
			}
			if gauge.Name == "" || gauge.Value == nil {
				return nil
			}
			// Of several such ones the sum could be 0.
			if *gauge.Value < 0 || *gauge.Value > math.MaxInt32 {
				return fmt.Errorf("stat %s has an impossible value: %d", gauge.Name, *gauge.Value)
			}
			gauges[gauge.Name] = *gauge.Value
			return nil
		})
	})
	return gauges, err
}
