package envoy

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// dynamicEnvoy answers as a real one with dynamic resources does.
func dynamicEnvoy(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	io.WriteString(w, map[string]string{
		"/listeners": `{"listener_statuses": [
			{"name": "web", "local_address": {"socket_address": {"address": "::", "port_value": 40000}}},
			{"name": "h3", "local_address": {"socket_address": {"address": "127.0.0.1", "port_value": 443}},
			 "additional_local_addresses": [{"socket_address": {"address": "127.0.0.1", "port_value": 444}}]},
			{"name": "in", "local_address": {"envoy_internal_address": {"server_listener_name": "in"}}}]}`,
		"/config_dumpdynamic_listeners": `{"configs": [
			{"@type": "x", "name": "web", "active_state": {"version_info": "1", "listener": {"name": "web", "transparent": true, "filter_chains": [{}],
			 "address": {"socket_address": {"address": "::", "port_value": 0}}}}, "warming_state": {"version_info": "2"}},
			{"name": "h3", "active_state": {"version_info": "1", "listener": {"name": "h3", "udp_listener_config": {"quic_options": {}},
			 "address": {"socket_address": {"protocol": "UDP", "address": "127.0.0.1", "port_value": 443}}}}},
			{"name": "bad", "error_state": {"details": "unknown cluster"}},
			{"name": "new", "warming_state": {"version_info": "1"}},
			{"name": "old", "draining_state": {"version_info": "1"}}]}`,
		"/config_dumpdynamic_active_clusters":  `{"configs": [{"cluster": {"@type": "x", "name": "a"}}, {"cluster": {"name": "b"}}]}`,
		"/config_dumpdynamic_warming_clusters": `{"configs": [{"cluster": {"name": "b"}}, {"cluster": {"name": "c"}}]}`,
		"/stats":                               `{"stats": [{"name": "control_plane.connected_state", "value": 1}]}`,
	}[r.URL.Path+q.Get("resource")])
}

func TestResourcesTellsActiveWarmingAndRefused(t *testing.T) {
	got, err := serve(t, dynamicEnvoy).Resources(t.Context(), true)
	wantNil(t, err)
	quic := Address{Host: "127.0.0.1", Port: 443, UDP: true}
	want := Resources{
		Active: []Listener{
			{Name: "web", Transparent: true, Address: Address{Host: "::", Port: 40000}},
			{Name: "h3", UDP: true, QUIC: true, Address: quic, More: []Address{{Host: "127.0.0.1", Port: 444}}},
			{Name: "in", Internal: true},
		},
		DynamicListeners: []Resource{
			{Name: "web", Active: true, Listener: Listener{Name: "web", Transparent: true, Address: Address{Host: "::"}}},
			{Name: "h3", Active: true, Warm: true, Listener: Listener{Name: "h3", UDP: true, QUIC: true, Address: quic}},
			{Name: "bad", Error: "unknown cluster"},
			{Name: "new"},
			{Name: "old"},
		},
		DynamicClusters: []Resource{{Name: "a", Active: true, Warm: true}, {Name: "b", Active: true}, {Name: "c"}},
		Connected:       true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestResourcesAsksNoMoreThanNeeded(t *testing.T) {
	f := serve(t, dynamicEnvoy)
	if _, err := f.Resources(t.Context(), false); err != nil {
		t.Error(err)
	}
	if got := f.queries(); len(got) != 1 || got[0] != "GET /listeners?format=json" {
		t.Errorf("without dynamic resources: %q", got)
	}
	whole := func() (n int) {
		if _, err := f.Resources(t.Context(), true); err != nil {
			t.Error(err)
		}
		for _, q := range f.queries() {
			if strings.Contains(q, "dynamic_listeners") && !strings.Contains(q, "mask=") {
				n++
			}
		}
		return n
	}
	if n := whole(); n != 1 {
		t.Errorf("the first time: %d whole dumps", n)
	}
	if n := whole(); n != 0 {
		t.Errorf("nothing is new: %d whole dumps", n)
	}
	if n := f.dials.Load(); n != 3 {
		t.Errorf("%d connections for 3 calls", n)
	}
}

// A listener whose configuration changed may have become UDP.
func TestResourcesReadsANewVersion(t *testing.T) {
	version, protocol := "1", "TCP"
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resource") != "dynamic_listeners" {
			io.WriteString(w, "{}")
			return
		}
		fmt.Fprintf(w, `{"configs": [{"name": "a", "active_state": {"version_info": %q, "listener": {"address":
			{"socket_address": {"protocol": %q, "address": "::", "port_value": 1}}}}}]}`, version, protocol)
	})
	for version, protocol = range map[string]string{"1": "TCP", "2": "UDP"} {
		got, err := f.Resources(t.Context(), true)
		if err != nil || got.DynamicListeners[0].Listener.UDP != (protocol == "UDP") {
			t.Errorf("version %s: %+v, %v", version, got.DynamicListeners, err)
		}
	}
}

func TestConnectedMeansEveryStream(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false,
		`{"stats": [{"name": "control_plane.connected_state", "value": 0}]}`: false,
		`{"stats": [{"name": "control_plane.connected_state", "value": 1}]}`: true,
		`{"stats": [{"name": "cluster_manager.cds.control_plane.connected_state", "value": 1},
		            {"name": "listener_manager.lds.control_plane.connected_state", "value": 0}]}`: false,
	} {
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/stats" {
				io.WriteString(w, text)
				return
			}
			io.WriteString(w, "{}")
		})
		got, err := f.Resources(t.Context(), true)
		if err != nil || got.Connected != want {
			t.Errorf("%s: %v, %v", text, got.Connected, err)
		}
	}
}

func TestResourcesIsAllOrNothing(t *testing.T) {
	for _, path := range []string{"/listeners", "dynamic_listeners&mask", "dynamic_warming", "dynamic_active_cl", "/stats"} {
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.String(), path) {
				io.WriteString(w, `{"configs": [{"name": "x"}, `)
				return
			}
			dynamicEnvoy(w, r)
		})
		if _, err := f.Resources(t.Context(), true); err == nil {
			t.Errorf("%s cut short: no error", path)
		}
	}
}
