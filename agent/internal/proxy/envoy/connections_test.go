package envoy

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// stats answers /stats with these gauges, and /listeners with one listener.
func stats(gauges map[string]int, listeners string) http.HandlerFunc {
	var items []string
	for name, value := range gauges {
		items = append(items, fmt.Sprintf(`{"name": "listener.%s.downstream_cx_active", "value": %d}`, name, value))
	}
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/listeners" {
			io.WriteString(w, listeners)
			return
		}
		io.WriteString(w, `{"stats": [`+strings.Join(items, ",")+`]}`)
	}
}

// B32 and B33: what else has the name of a connection.
func TestConnectionsCountsEachOnce(t *testing.T) {
	for name, c := range map[string]struct {
		gauges map[string]int
		want   int
	}{
		"five, on two workers": {map[string]int{"0.0.0.0_80": 5, "0.0.0.0_80.worker_0": 3, "0.0.0.0_80.worker_11": 2}, 5},
		"admin's twin":         {map[string]int{"0.0.0.0_80": 0, "admin.main_thread": 9}, 0},
		"internal":             {map[string]int{"0.0.0.0_80": 1, "envoy_internal_x": 7, "envoy_internal_x.worker_0": 7}, 1},
		"several listeners":    {map[string]int{"0.0.0.0_80": 1, "[__]_81": 2, "/run/x.sock": 3, "my.prefix": 4}, 10},
		"odd prefixes":         {map[string]int{"worker_0": 1, "a.worker_1": 2, "a.worker_x": 4, "admin_like": 8, "admins.worker_0": 16}, 31},
		"prefix and its twin":  {map[string]int{"a.worker_1": 2, "a.worker_1.worker_0": 2}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c.gauges["admin"] = 1
			got, err := serve(t, stats(c.gauges, "")).Connections(t.Context())
			if err != nil || got != c.want {
				t.Errorf("%d, %v; want %d", got, err, c.want)
			}
		})
	}
}

func TestConnectionsByListener(t *testing.T) {
	gauges := map[string]int{"0.0.0.0_80": 1, "0.0.0.0_80.worker_0": 1, "my.prefix": 4, "admin": 1}
	by, err := serve(t, stats(gauges, "")).ConnectionsByListener(t.Context())
	if want := map[string]int{"0.0.0.0_80": 1, "my.prefix": 4}; err != nil || !maps.Equal(by, want) {
		t.Errorf("%v, %v; want %v", by, err, want)
	}
}

// Somebody may be ended on the strength of a 0, so it must be proven.
func TestConnectionsIsNeverZeroByMistake(t *testing.T) {
	const one = `{"listener_statuses": [{"name": "web", "local_address": {"socket_address": {"address": "::", "port_value": 1}}}]}`
	const inner = `{"listener_statuses": [{"name": "in", "local_address": {"envoy_internal_address": {}}}]}`
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		word    string
	}{
		"all hidden by a matcher":  {stats(nil, one), "stats_matcher"},
		"some hidden by a matcher": {stats(map[string]int{"admin": 1}, one), `"web" is active but has no gauge`},
		"half an answer":           {says(`{"stats": [{"name": "listener.admin.downstream_cx_active", "value": 1}`), "not complete JSON"},
		"an older form":            {says(`listener.a.downstream_cx_active: 0`), "not complete JSON"},
		"a list":                   {says(`[]`), "not what was asked for"},
		"stats is no list":         {says(`{"stats": {}}`), "not what was asked for"},
		"503":                      {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "busy", http.StatusServiceUnavailable) }, "status 503"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := serve(t, c.handler).Connections(t.Context())
			wantError(t, err, c.word)
			if n != 0 {
				t.Errorf("%d beside an error", n)
			}
		})
	}
	for name, listeners := range map[string]string{"no listener": `{}`, "an internal one": inner} {
		if n, err := serve(t, stats(map[string]int{"admin": 1}, listeners)).Connections(t.Context()); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

func TestAnswersMayNotBeEndless(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
				return
			}
		}
	})
	_, err := f.Ready(t.Context())
	wantError(t, err, "too large")
}
