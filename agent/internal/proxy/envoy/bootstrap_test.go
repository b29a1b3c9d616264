package envoy

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// a bootstrap with each kind of listener.
const everyKind = `
node: {id: one, cluster: two}
admin: {address: {socket_address: {address: 127.0.0.1, port_value: 9901}}}
static_resources:
  listeners:
  - {name: web, address: {socket_address: {address: 0.0.0.0, port_value: 80}}}
  - {address: {socket_address: {address: "::", port_value: "8080"}}}
  - {name: dns, address: {socket_address: {protocol: UDP, address: 0.0.0.0, port_value: 53}}}
  - name: h3
    address: {socket_address: {protocol: UDP, address: 0.0.0.0, port_value: 443}}
    udp_listener_config: {quic_options: {}}
  - name: h3 by transport
    address: {socket_address: {protocol: 1, address: 0.0.0.0, port_value: 444}}
    filter_chains: [{transport_socket: {name: envoy.transport_sockets.quic}}]
  - {name: tproxy, transparent: true, address: {socket_address: {address: 0.0.0.0, port_value: 15001}}}
  - {name: elsewhere, address: {socket_address: {address: 0.0.0.0, port_value: 82, network_namespace_filepath: /run/netns/x}}}
  - {name: inner, internal_listener: {}}
  - {name: unbound, bind_to_port: false, address: {socket_address: {address: 0.0.0.0, port_value: 83}}}
  - {name: pipe, address: {pipe: {path: /run/x.sock}}}
  - name: two
    address: {socket_address: {address: 0.0.0.0, port_value: 84}}
    additional_addresses: [{address: {socket_address: {protocol: UDP, address: 0.0.0.0, port_value: 85}}}]
  - {name: api, api_listener: {}}
  clusters: [{name: a}, {type: STATIC}, {name: b}]
`

var everyKindWant = Bootstrap{
	Admin: &Address{Host: "127.0.0.1", Port: 9901},
	Listeners: []Listener{
		{Name: "web", Address: Address{Host: "0.0.0.0", Port: 80}},
		{Address: Address{Host: "::", Port: 8080}},
		{Name: "dns", UDP: true, Address: Address{Host: "0.0.0.0", Port: 53, UDP: true}},
		{Name: "h3", UDP: true, QUIC: true, Address: Address{Host: "0.0.0.0", Port: 443, UDP: true}},
		{Name: "h3 by transport", UDP: true, QUIC: true, Address: Address{Host: "0.0.0.0", Port: 444, UDP: true}},
		{Name: "tproxy", Transparent: true, Address: Address{Host: "0.0.0.0", Port: 15001}},
		{Name: "elsewhere", NetNS: "/run/netns/x", Address: Address{Host: "0.0.0.0", Port: 82}},
		{Name: "inner", Internal: true},
		{Name: "unbound", Unbound: true, Address: Address{Host: "0.0.0.0", Port: 83}},
		{Name: "pipe", Address: Address{Path: "/run/x.sock"}},
		{Name: "two", UDP: true, Address: Address{Host: "0.0.0.0", Port: 84}, More: []Address{{Host: "0.0.0.0", Port: 85, UDP: true}}},
	},
	Clusters: []string{"a", "b"},
}

func TestBootstrapKnowsEachKindOfListener(t *testing.T) {
	got, err := ParseBootstrap([]byte(everyKind))
	wantNil(t, err)
	if !reflect.DeepEqual(got, everyKindWant) {
		t.Errorf("got  %+v\nwant %+v", got, everyKindWant)
	}
}

// JSON is read by other code than YAML, and both accept protobuf's own JSON
// names; a tab is fine in JSON only.
func TestBootstrapReadsJSONAndCamelCaseAlike(t *testing.T) {
	asJSON := toJSON(t, everyKind)
	camel := bytes.NewBuffer(nil)
	for i, part := range strings.Split(string(asJSON), "_") {
		if i > 0 && part[0] >= 'a' && part[0] <= 'z' {
			part = strings.ToUpper(part[:1]) + part[1:]
		} else if i > 0 {
			part = "_" + part
		}
		camel.WriteString(part)
	}
	quic := bytes.ReplaceAll(camel.Bytes(), []byte("transportSockets.quic"), []byte("transport_sockets.quic"))
	for name, data := range map[string][]byte{
		"json":      asJSON,
		"with BOM":  append([]byte("\xef\xbb\xbf"), asJSON...),
		"with tabs": bytes.ReplaceAll(asJSON, []byte(" "), []byte("\t")),
		"camelCase": quic,
	} {
		if name == "with tabs" { // tabs between tokens, not inside of names
			var b bytes.Buffer
			wantNil(t, json.Indent(&b, asJSON, "", "\t"))
			data = b.Bytes()
		}
		got, err := ParseBootstrap(data)
		wantNil(t, err)
		if !reflect.DeepEqual(got, everyKindWant) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestBootstrapAdmin(t *testing.T) {
	for text, want := range map[string]*Address{
		`admin: {}`: nil,
		"!ignore admin: {address: {pipe: {path: /x}}}\nnode: {}": nil,
		`node: {}`:                            nil,
		`admin: {access_log_path: /dev/null}`: nil,
		`admin: {address: {pipe: {path: /run/admin.sock}}}`:                                         {Path: "/run/admin.sock"},
		`admin: {address: {socket_address: {address: 127.0.0.1, port_value: 0}}}`:                   {Host: "127.0.0.1"},
		`admin: {address: {socket_address: {address: 127.0.0.1, port_value: 99999}}}`:               {Host: "127.0.0.1"},
		"x: &a {socket_address: {address: \"::1\", port_value: 9}}\nadmin: {address: *a}":           {Host: "::1", Port: 9},
		"admin: {address: {socket_address: {address: a, port_value: 1}}}\nadmin: {}\nnode: null":    nil, // twice: for Envoy to judge
		"admin:\n  address:\n    socket_address: {address: 127.0.0.1, port_value: 80.0}\n---\nx: 1": {Host: "127.0.0.1", Port: 80},
	} {
		got, err := ParseBootstrap([]byte(text))
		if err != nil || !reflect.DeepEqual(got.Admin, want) {
			t.Errorf("%s\n%v, %v", text, got.Admin, err)
		}
	}
}

func TestBootstrapDynamicResources(t *testing.T) {
	const (
		ads  = `ads_config: {api_type: GRPC}, `
		wait = `initial_fetch_timeout: 0s`
		rest = `api_config_source: {api_type: REST}`
		grpc = `api_config_source: {api_type: DELTA_GRPC}`
		file = `path_config_source: {path: /x}`
	)
	for text, want := range map[string]Bootstrap{
		``:  {},
		ads: {ControlPlane: true},
		ads + `lds_config: {ads: {}, ` + wait + `}`:                               {Dynamic: true, ControlPlane: true, WaitsForFirstFetch: true},
		ads + `lds_config: {ads: {}, ` + wait + `}, cds_config: {ads: {}}`:        {Dynamic: true, ControlPlane: true},
		ads + `lds_config: {ads: {}, initial_fetch_timeout: 1s}`:                  {Dynamic: true, ControlPlane: true},
		ads + `lds_config: {ads: {}, initial_fetch_timeout: 0.000s}`:              {Dynamic: true, ControlPlane: true, WaitsForFirstFetch: true},
		`cds_config: {` + rest + `}`:                                              {Dynamic: true},
		`cds_config: {` + grpc + `}`:                                              {Dynamic: true, ControlPlane: true},
		`cds_config: {` + file + `}`:                                              {Dynamic: true, WaitsForFirstFetch: true},
		`lds_config: {` + file + `}, cds_config: {` + grpc + `, ` + wait + `}`:    {Dynamic: true, ControlPlane: true, WaitsForFirstFetch: true},
		ads + `lds_resources_locator: "xdstp://x", cds_config: {` + file + `}`:    {Dynamic: true, ControlPlane: true},
		`ads_config: {api_type: AGGREGATED_DELTA_GRPC}, lds_config: {ads: {}}`:    {Dynamic: true, ControlPlane: true},
		`ads_config: {api_type: 3}, lds_config: {ads: {}, ` + wait + `}, x: null`: {Dynamic: true, ControlPlane: true, WaitsForFirstFetch: true},
	} {
		got, err := ParseBootstrap([]byte("dynamic_resources: {" + text + "}"))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, %v", text, got, err)
		}
	}
}

func TestBootstrapRefusesWhatCanNotBeOne(t *testing.T) {
	for name, c := range map[string]struct{ data, word string }{
		"empty":            {"", "empty"},
		"blank":            {" \n\t\n", "empty"},
		"comments only":    {"# nothing\n", "empty"},
		"null":             {"null", "empty"},
		"a list":           {"- admin\n", "mapping"},
		"a word":           {"admin", "mapping"},
		"a JSON list":      {`["admin"]`, "mapping"},
		"something else":   {"apiVersion: v1\nkind: Pod\n", "not an Envoy bootstrap"},
		"empty JSON":       {`{}`, "not an Envoy bootstrap"},
		"only null keys":   {`{"admin": null}`, "not an Envoy bootstrap"},
		"half a YAML flow": {"admin: {address:", "neither YAML nor JSON"},
		"half a JSON":      {`{"admin": {"address"`, "neither YAML nor JSON"},
		"binary":           {"\x00\x01\x02", "neither YAML nor JSON"},
		"ELF":              {"\x7fELF\x02\x01\x01", "neither YAML nor JSON"},
		"too large":        {strings.Repeat("#", MaxBootstrap+1), "too large"},
		"too deep":         {"admin: " + strings.Repeat("[", 20000), "neither YAML nor JSON"},
	} {
		_, err := ParseBootstrap([]byte(c.data))
		if err == nil {
			t.Errorf("%s was taken", name)
			continue
		}
		wantError(t, err, c.word)
		if strings.Contains(err.Error(), "\n") || len(err.Error()) > 250 {
			t.Errorf("%s: not one clear sentence: %q", name, err)
		}
	}
}

// What Envoy tolerates, or judges by itself, isn't refused here.
func TestBootstrapLeavesTheRestToEnvoy(t *testing.T) {
	for _, text := range []string{
		"admin: 3\n", "admin: [a]\nstatic_resources: x\ndynamic_resources: [1]",
		"node: {}\nunknown: 1\n", "static_resources: {listeners: {}, clusters: 7}",
		"static_resources: {listeners: [1, null, [x], {address: 2}]}",
		`{"static_resources": {"listeners": [1, null, [2], {"address": 2}], "clusters": {"name": 1}}}`,
	} {
		if _, err := ParseBootstrap([]byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Nested aliases would be 10^9 names if anything expanded them.
func TestBootstrapIsNotImpressedByAnAliasBomb(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		ref := "*" + string(c-1)
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat(ref+",", 9) + ref + "]\n"
	}
	got, err := ParseBootstrap([]byte(bomb + "static_resources: {clusters: *i, listeners: *i}\nself: &s [*s]\n"))
	if err != nil || len(got.Clusters) != 0 || len(got.Listeners) != 10 {
		t.Errorf("%d clusters, %d listeners, %v", len(got.Clusters), len(got.Listeners), err)
	}
}

func BenchmarkBootstrap(b *testing.B) {
	var data strings.Builder
	data.WriteString("static_resources:\n  clusters:\n")
	for range 20000 {
		data.WriteString("  - {name: c, type: STATIC, load_assignment: {cluster_name: c, endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: 1}}}}]}]}}\n")
	}
	for name, text := range map[string][]byte{"yaml": []byte(data.String()), "json": toJSON(b, data.String())} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := ParseBootstrap(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
