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

func (s *session) connections(ctx context.Context) (sum int, err error) {
	by, err := s.byListener(ctx)
	for _, n := range by {
		sum += n
	}
	return sum, err
}

// ConnectionsByListener is Connections for each listener by the name that it
// has in /stats: its stat_prefix, or its address with : as _ ("0.0.0.0_8080").
// It's empty only for an Envoy without any listener.
func (a *Admin) ConnectionsByListener(ctx context.Context) (by map[string]int, err error) {
	err = a.oneEpoch(ctx, func(s *session) (err error) {
		by, err = s.byListener(ctx)
		return err
	})
	return by, err
}

func (s *session) byListener(ctx context.Context) (map[string]int, error) {
	gauges, err := s.gauges(ctx, `^listener\..*\.downstream_cx_active$`)
	if err != nil {
		return nil, err
	}
	if _, ok := gauges["listener.admin"+activeSuffix]; !ok {
		return nil, fmt.Errorf("admin %s: no listener gauges in /stats: is there a stats_matcher that hides them?", s.admin.address)
	}
	if by := activeByListener(gauges); len(by) > 0 {
		return by, nil
	}
	listeners, err := s.listeners(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range listeners {
		if !l.Internal {
			return nil, fmt.Errorf("admin %s: listener %q is active but has no gauge in /stats: is there a stats_matcher that hides it?",
				s.admin.address, l.Name)
		}
	}
	return nil, nil
}

const activeSuffix = ".downstream_cx_active"

// activeByListener leaves out what doesn't count.
func activeByListener(gauges map[string]int) map[string]int {
	by := map[string]int{}
	for name, value := range gauges {
		prefix := strings.TrimSuffix(name, activeSuffix)
		switch {
		case prefix == "listener.admin" || prefix == "listener.admin.main_thread":
		case strings.HasPrefix(prefix, "listener.envoy_internal_"):
		case isWorkerTwin(gauges, prefix):
		default:
			by[strings.TrimPrefix(prefix, "listener.")] = value
		}
	}
	return by
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
