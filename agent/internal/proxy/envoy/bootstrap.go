package envoy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// MaxBootstrap is the size in bytes from which on a file isn't taken for a
// bootstrap. The largest measured one (20,000 clusters) has 4.2 MB.
const MaxBootstrap = 64 << 20

// Bootstrap is what a supervisor must know of one; the rest is Envoy's.
type Bootstrap struct {
	Admin     *Address   // nil: none. Port 0 is reported as it stands
	Listeners []Listener // static ones
	Clusters  []string   // names of the static ones

	Dynamic      bool // LDS or CDS configured, from any source
	ControlPlane bool // some of it comes over gRPC

	// WaitsForFirstFetch: an Envoy whose control plane is silent stays
	// INITIALIZING instead of going LIVE with nothing (fact 20): each LDS and
	// CDS source that can be silent says initial_fetch_timeout: 0s. False
	// when nothing is dynamic.
	WaitsForFirstFetch bool
}

// Sentences for what can't be a bootstrap at all.
var (
	errEmptyBootstrap = errors.New("the bootstrap is empty")
	errNotMapping     = errors.New("the bootstrap isn't a mapping of keys to values (YAML or JSON)")
	errNotBootstrap   = errors.New("the file is valid but not an Envoy bootstrap: it has none of its keys (admin, node, static_resources, dynamic_resources, …)")
)

// ParseBootstrap reads YAML or JSON, whatever the file is called. It refuses
// only what can't be a bootstrap at all; unknown or misspelt fields are for
// Envoy's own validation. The result holds on to nothing of data.
func ParseBootstrap(data []byte) (Bootstrap, error) {
	root, err := parseTree(data)
	if err != nil {
		return Bootstrap{}, err
	}
	top := root.object()
	if !hasBootstrapKey(top) {
		return Bootstrap{}, errNotBootstrap
	}
	static := top["static_resources"].object()
	b := Bootstrap{
		Admin:     adminAddress(top["admin"]),
		Listeners: staticListeners(static["listeners"]),
		Clusters:  names(static["clusters"]),
	}
	b.readDynamic(top["dynamic_resources"].object())
	return b, nil
}

func parseTree(data []byte) (tree, error) {
	if len(data) > MaxBootstrap {
		return tree{}, fmt.Errorf("the bootstrap is too large: %d bytes, at most %d are read", len(data), MaxBootstrap)
	}
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if len(data) == 0 {
		return tree{}, errEmptyBootstrap
	}
	// JSON is read by itself: it costs a tenth of YAML's memory, and may
	// contain tabs. What only looks like it (a YAML flow mapping) is YAML.
	if data[0] == '{' && json.Valid(data) {
		return tree{json: data}, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return tree{}, fmt.Errorf("the bootstrap is neither YAML nor JSON: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return tree{}, errEmptyBootstrap // comments only
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return tree{}, errNotMapping
	}
	return tree{yaml: doc.Content[0]}, nil
}

// names collects the name of each item, copied so that no tree stays alive.
func names(list tree) []string {
	var names []string
	for _, item := range list.items() {
		if name := item.at("name").text(); name != "" {
			names = append(names, strings.Clone(name))
		}
	}
	return names
}

func adminAddress(admin tree) *Address {
	a, ok := addressOf(admin.at("address"))
	if !ok {
		return nil
	}
	return &a
}

func hasBootstrapKey(top object) bool {
	for key := range top {
		if bootstrapKeys[key] {
			return true
		}
	}
	return false
}

// bootstrapKeys are the fields of envoy.config.bootstrap.v3.Bootstrap.
var bootstrapKeys = setOf(
	"admin", "application_log_config", "bootstrap_extensions",
	"certificate_provider_instances", "cluster_manager", "config_sources",
	"default_config_source", "default_regex_engine",
	"default_socket_interface", "deferred_stat_options",
	"dns_resolution_config", "dynamic_resources", "enable_dispatcher_stats",
	"fatal_actions", "flags_path", "grpc_async_client_manager_config",
	"hds_config", "header_prefix", "inline_headers", "layered_runtime",
	"listener_manager", "memory_allocator_manager", "node",
	"node_context_params", "overload_manager", "perf_tracing_file_path",
	"stats_config", "stats_eviction_interval", "stats_flush_interval",
	"stats_flush_on_admin", "stats_server_version_override", "stats_sinks",
	"static_resources", "tracing", "typed_dns_resolver_config",
	"use_tcp_for_dns_lookups", "watchdog", "watchdogs",
	"xds_config_tracker_extension", "xds_delegate_extension",
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}
