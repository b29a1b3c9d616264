package envoy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"testing"
	"testing/iotest"
)

// canned answers every query with the same text.
type canned struct{ text []byte }

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	// In pieces, as a network would bring it.
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.HalfReader(bytes.NewReader(c.text)))}, nil
}

func (c canned) session() *session {
	admin := NewAdmin(Address{Path: "/fuzz"})
	return &session{admin, &http.Client{Transport: c}}
}

// fuzzAnswers runs read over any answer, and over the first part of it: half an
// answer is refused, or the whole of it says the same.
func fuzzAnswers[T any](f *testing.F, read func(context.Context, *session) (T, error), check func(*testing.T, T), seeds ...string) {
	for _, seed := range seeds {
		f.Add([]byte(seed), uint16(len(seed)/2))
		f.Add([]byte(seed), uint16(len(seed)-1))
	}
	f.Fuzz(func(t *testing.T, data []byte, cut uint16) {
		data = bytes.TrimSpace(data)
		before := allocated()
		got, err := read(t.Context(), canned{data}.session())
		checkAllocated(t, before, len(data))
		var nothing T
		if err != nil {
			if !reflect.DeepEqual(got, nothing) {
				t.Errorf("%v, and beside it %+v", err, got)
			}
			return
		}
		check(t, got)
		if !json.Valid(data) {
			return // what follows a whole answer isn't part of it
		}
		part, err := read(t.Context(), canned{data[:int(cut)%len(data)]}.session())
		if err == nil && !reflect.DeepEqual(part, got) {
			t.Errorf("half an answer passes for a whole one: %+v, not %+v", part, got)
		}
	})
}

// An epoch that isn't one would be taken for the neighbour's, or for ours.
func FuzzServerInfo(f *testing.F) {
	read := func(ctx context.Context, s *session) (ServerInfo, error) { return s.serverInfo(ctx) }
	check := func(t *testing.T, i ServerInfo) {
		if i.State == "" || i.Epoch < 0 || i.Concurrency < 0 || i.Uptime < 0 {
			t.Errorf("impossible: %+v", i)
		}
	}
	fuzzAnswers(f, read, check, info,
		`{"state":"LIVE","command_line_options":{"restart_epoch":-1,"concurrency":-2}}`,
		`{"state":"LIVE","uptime_current_epoch":"-9s","command_line_options":{}}`,
		`{"command_line_options":{"restart_epoch":1},"state":"LIVE","version":"a/1.40.0/b"}`,
		`{"command_line_options":{},"state":"LIVE" ,"hot_restart_version":"11.104","x":1}`,
		`{"state":"LIVE","state":"","command_line_options":null}`, `[]`, `{"state":{}}`)
}

func FuzzListeners(f *testing.F) {
	read := func(ctx context.Context, s *session) ([]Listener, error) {
		listeners, err := s.listeners(ctx)
		if err != nil {
			return nil, err // what was read until then is the callers' to drop
		}
		return listeners, nil
	}
	check := func(t *testing.T, listeners []Listener) {
		for _, l := range listeners {
			checkListener(t, l)
		}
		Missing(Bootstrap{Listeners: listeners}, nil, Resources{Active: listeners})
	}
	fuzzAnswers(f, read, check,
		`{"listener_statuses":[{"name":"web","local_address":{"socket_address":{"address":"::1","port_value":80}},`+
			`"additional_local_addresses":[{"pipe":{"path":"/x"}}]},{"name":"in","local_address":{"envoy_internal_address":{}}}]}`,
		`{"listener_statuses":[{},null,[],1]}`, `{}`, `{"listener_statuses":null}`, `{"a":{"b":[1]},"listenerStatuses":[]}`)
}

func FuzzConfigDump(f *testing.F) {
	type dump struct {
		listeners, clusters []Resource
	}
	read := func(ctx context.Context, s *session) (d dump, err error) {
		if d.listeners, err = s.dynamicListeners(ctx); err != nil {
			return dump{}, err
		}
		if d.clusters, err = s.dynamicClusters(ctx); err != nil {
			return dump{}, err
		}
		return d, nil
	}
	check := func(t *testing.T, d dump) {
		for _, r := range append(d.listeners, d.clusters...) {
			if r.Warm && !r.Active {
				t.Errorf("warm and not active: %+v", r)
			}
			checkListener(t, r.Listener)
		}
		all := Resources{DynamicListeners: d.listeners, DynamicClusters: d.clusters}
		all.describe()
		for _, r := range d.listeners {
			if r.Active && len(Missing(Bootstrap{}, &all, Resources{})) == 0 {
				t.Errorf("a newcomer without %q lacks nothing", r.Name)
			}
		}
	}
	fuzzAnswers(f, read, check,
		`{"configs":[{"name":"l","active_state":{"version_info":"1","last_updated":"t","listener":{"name":"l","address":{"socket_address":{"address":"127.0.0.1","port_value":"1"}}}}},`+
			`{"name":"w","warming_state":{}},{"name":"e","error_state":{"details":"no"}}]}`,
		`{"configs":[{"cluster":{"name":"c"}},{"version_info":"2","cluster":{"name":"d"}}]}`,
		`{"configs":[{"active_state":{"listener":[]}},null]}`, `{"configs":{}}`, `{}`)
}

// What can't be a number of anything isn't taken for one, nor added up: an epoch
// -1 would make the next one 0, and -5 and 5 connections would be none.
func TestImpossibleNumbersAreNoAnswer(t *testing.T) {
	for _, text := range []string{
		`{"state":"LIVE","command_line_options":{"restart_epoch":-1}}`,
		`{"state":"LIVE","command_line_options":{"restart_epoch":0,"concurrency":-2}}`,
		`{"state":"LIVE","command_line_options":{"restart_epoch":0},"version":"x"`, // cut short
	} {
		if got, err := (canned{[]byte(text)}).session().serverInfo(t.Context()); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	const admin = `{"stats":[{"name":"listener.admin.downstream_cx_active","value":0},`
	for _, text := range []string{
		admin + `{"name":"listener.a.downstream_cx_active","value":-5},{"name":"listener.b.downstream_cx_active","value":5}]}`,
		admin + `{"name":"listener.a.downstream_cx_active","value":9223372036854775807},{"name":"listener.b.downstream_cx_active","value":9223372036854775807}]}`,
		admin + `{"name":"listener.a.downstream_cx_active","value":18446744073709551615}]}`, // underflow in Envoy
	} {
		if n, err := (canned{[]byte(text)}).session().connections(t.Context()); err == nil {
			t.Errorf("%s: %d connections", text, n)
		}
	}
}

// Somebody may be ended on the strength of a 0.
func FuzzStats(f *testing.F) {
	type numbers struct {
		connections int
		uncountable bool
		connected   bool
	}
	read := func(ctx context.Context, s *session) (n numbers, err error) {
		if n.connected, err = s.connected(ctx); err != nil {
			return numbers{}, err
		}
		n.connections, err = s.connections(ctx)
		if errors.Is(err, errTooLarge) {
			return numbers{}, err
		}
		n.uncountable = err != nil
		return n, nil
	}
	check := func(t *testing.T, n numbers) {
		if n.connections < 0 || n.uncountable && n.connections != 0 {
			t.Errorf("%+v", n)
		}
	}
	fuzzAnswers(f, read, check,
		`{"stats":[{"name":"listener.admin.downstream_cx_active","value":1},{"name":"listener.0.0.0.0_80.downstream_cx_active","value":3},`+
			`{"name":"listener.0.0.0.0_80.worker_0.downstream_cx_active","value":3}]}`,
		`{"stats":[{"name":"listener.admin.downstream_cx_active","value":0},{"name":"listener.a.downstream_cx_active","value":-5},{"name":"listener.b.downstream_cx_active","value":5}]}`,
		`{"stats":[{"name":"listener.admin.downstream_cx_active","value":0},{"name":"listener.a.downstream_cx_active","value":9223372036854775807},{"name":"listener.b.downstream_cx_active","value":9223372036854775807}]}`,
		`{"stats":[{"name":"control_plane.connected_state","value":1}]}`, `{"stats":[{"histograms":{}}]}`, `{"stats":[]}`)
}

// What any Listener that was read has to be like.
func checkListener(t *testing.T, l Listener) {
	t.Helper()
	for _, a := range append([]Address{l.Address}, l.More...) {
		if a.Port < 0 || a.Port > 65535 || a.Path != "" && (a.Host != "" || a.Port != 0) {
			t.Errorf("impossible address: %+v", a)
		}
		if a.UDP && !l.UDP {
			t.Errorf("a UDP address, and no UDP listener: %+v", l)
		}
	}
	if n := len(l.Addresses()); (l.Internal || l.Unbound) && n > 0 {
		t.Errorf("no socket, and %d addresses: %+v", n, l)
	}
}
