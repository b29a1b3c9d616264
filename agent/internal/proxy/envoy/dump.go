package envoy

import (
	"context"
	"encoding/json"
	"strings"
)

// dynamicListener is envoy.admin.v3.ListenersConfigDump.DynamicListener.
type dynamicListener struct {
	Name    string          `json:"name"`
	Active  *listenerState  `json:"active_state"`
	Warming json.RawMessage `json:"warming_state"`
	Error   *struct {
		Details string `json:"details"`
	} `json:"error_state"`
}

type listenerState struct {
	Version  string          `json:"version_info"`
	Updated  string          `json:"last_updated"`
	Listener json.RawMessage `json:"listener"`
}

// version names one configuration of a listener.
func (d dynamicListener) version() string {
	return strings.Join([]string{d.Name, d.Active.Version, d.Active.Updated}, "\x00")
}

// A mask can't reach into a listener's configuration (all three versions
// answer 400): it is either left out or comes whole.
const listenerStates = "?resource=dynamic_listeners&mask=name,error_state.details," +
	"warming_state.version_info,active_state.version_info,active_state.last_updated"

func (s *session) dynamicListeners(ctx context.Context) ([]Resource, error) {
	dump, err := s.listenerDump(ctx, listenerStates)
	if err != nil {
		return nil, err
	}
	details, err := s.listenerDetails(ctx, dump)
	if err != nil {
		return nil, err
	}
	resources := make([]Resource, 0, len(dump))
	for _, d := range dump {
		r := Resource{Name: d.Name, Active: d.Active != nil, Warm: d.Active != nil && d.Warming == nil}
		if d.Error != nil {
			r.Error = d.Error.Details
		}
		if r.Active {
			r.Listener = details[d.version()]
		}
		resources = append(resources, r)
	}
	return resources, nil
}

func (s *session) listenerDump(ctx context.Context, query string) ([]dynamicListener, error) {
	var dump []dynamicListener
	err := s.dump(ctx, query, func(raw json.RawMessage) error {
		var d dynamicListener
		err := json.Unmarshal(raw, &d)
		dump = append(dump, d)
		return err
	})
	return dump, err
}

// listenerDetails reads the configurations in dump, from memory if each of
// them has been seen before.
func (s *session) listenerDetails(ctx context.Context, dump []dynamicListener) (map[string]Listener, error) {
	if known := s.admin.details.Load(); known != nil && knows(*known, dump) {
		return *known, nil
	}
	details := map[string]Listener{}
	err := s.dump(ctx, "?resource=dynamic_listeners", func(raw json.RawMessage) error {
		var d dynamicListener
		if err := json.Unmarshal(raw, &d); err != nil {
			return err
		}
		if d.Active != nil {
			details[d.version()] = listenerOf(tree{json: d.Active.Listener}.object())
		}
		return nil
	})
	if err == nil {
		s.admin.details.Store(&details)
	}
	return details, err
}

func knows(details map[string]Listener, dump []dynamicListener) bool {
	for _, d := range dump {
		if d.Active == nil {
			continue
		}
		if _, ok := details[d.version()]; !ok {
			return false
		}
	}
	return true
}

// dynamicClusters asks for the warming ones first: one that becomes warm in
// between is then reported as warming, never as absent.
func (s *session) dynamicClusters(ctx context.Context) ([]Resource, error) {
	warming, err := s.clusterNames(ctx, "dynamic_warming_clusters")
	if err != nil {
		return nil, err
	}
	active, err := s.clusterNames(ctx, "dynamic_active_clusters")
	if err != nil {
		return nil, err
	}
	var resources []Resource
	isWarming := setOf(warming...)
	for _, name := range active {
		resources = append(resources, Resource{Name: name, Active: true, Warm: !isWarming[name]})
		delete(isWarming, name)
	}
	for _, name := range warming {
		if isWarming[name] {
			resources = append(resources, Resource{Name: name})
		}
	}
	return resources, nil
}

func (s *session) clusterNames(ctx context.Context, resource string) ([]string, error) {
	var names []string
	err := s.dump(ctx, "?resource="+resource+"&mask=cluster.name", func(raw json.RawMessage) error {
		var d struct {
			Cluster struct {
				Name string `json:"name"`
			} `json:"cluster"`
		}
		err := json.Unmarshal(raw, &d)
		names = append(names, d.Cluster.Name)
		return err
	})
	return names, err
}

func (s *session) dump(ctx context.Context, params string, each func(json.RawMessage) error) error {
	q := query{path: "/config_dump" + params, within: dumpWithin, limit: dumpLimit}
	return s.get(ctx, q, func(r answer) error { return r.each("configs", each) })
}

// connected looks at ADS and, where LDS and CDS have streams of their own, at
// theirs: the gauge's name depends on it.
func (s *session) connected(ctx context.Context) (bool, error) {
	streams, err := s.gauges(ctx, `^(|listener_manager\.lds\.|cluster_manager\.cds\.)control_plane\.connected_state$`)
	for _, up := range streams {
		if up == 0 {
			return false, err
		}
	}
	return len(streams) > 0, err
}
