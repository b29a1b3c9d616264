package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Status is what the control socket tells, read as a stranger would: by its
// published JSON.
type Status struct {
	PID          int      `json:"pid"`
	Mode         string   `json:"mode"`
	State        string   `json:"state"`
	Ready        bool     `json:"ready"`
	Serving      int      `json:"serving"`
	Epochs       []Epoch  `json:"epochs"`
	Pending      *Pending `json:"pending"`
	LastFailure  *Failure `json:"last_failure"`
	LastHandoff  *Handoff `json:"last_handoff"`
	Concurrency  int      `json:"concurrency"`
	AdminAddress string   `json:"admin_address"`
	BaseID       uint32   `json:"base_id"`
	ConfigPath   string   `json:"config_path"`
	EnvoyPath    string   `json:"envoy_path"`
	Upgrades     int      `json:"upgrades"`
	LastUpgrade  *Upgrade `json:"last_upgrade"`
}

// Upgrade is the last replacement of the supervisor's own program.
type Upgrade struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Error string `json:"error"`
}

// Epoch is one living Envoy.
type Epoch struct {
	Epoch           int     `json:"epoch"`
	PID             int     `json:"pid"`
	State           string  `json:"state"`
	TimeLeftSeconds float64 `json:"time_left_seconds"`
	Connections     int     `json:"connections"`
	EnvoyVersion    string  `json:"envoy_version"`
	ConfigHash      string  `json:"config_hash"`
}

// Pending is a handoff that waits.
type Pending struct {
	Triggers []string `json:"triggers"`
	WaitsFor string   `json:"waits_for"`
}

// Failure is the last handoff that failed.
type Failure struct {
	Epoch int      `json:"epoch"`
	Step  string   `json:"step"`
	Error string   `json:"error"`
	Log   []string `json:"log"`
}

// Handoff is the last commit; times are in milliseconds.
type Handoff struct {
	From         int `json:"from"`
	To           int `json:"to"`
	Milliseconds struct {
		Prepare float64 `json:"prepare"`
		Live    float64 `json:"live"`
		Verify  float64 `json:"verify"`
	} `json:"milliseconds"`
}

// Of is a living epoch's status, nil when it isn't alive.
func (s Status) Of(epoch int) *Epoch {
	for i := range s.Epochs {
		if s.Epochs[i].Epoch == epoch {
			return &s.Epochs[i]
		}
	}
	return nil
}

// Status asks the control socket.
func (r *Run) Status(ctx context.Context) (Status, error) {
	var st Status
	return st, r.Node.ControlCall(ctx, http.MethodGet, "/v1/status", &st)
}

// ControlCall makes one request to the control socket, without a body.
func (n *Node) ControlCall(ctx context.Context, method, path string, into any) error {
	client := http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", n.Control)
		},
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// Await polls the status until it is as wanted.
func (r *Run) Await(ctx context.Context, what string, want func(Status) bool) (Status, error) {
	var last Status
	for {
		st, err := r.Status(ctx)
		if err == nil {
			if last = st; want(st) {
				return st, nil
			}
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.done:
			return last, fmt.Errorf("awaiting %s: the supervisor has ended", what)
		case <-ctx.Done():
			return last, fmt.Errorf("awaiting %s: %w; last status %+v", what, context.Cause(ctx), last)
		}
	}
}

// Serves wants an epoch to serve.
func Serves(epoch int) func(Status) bool {
	return func(s Status) bool { return s.Serving == epoch && s.Ready }
}

// Alone wants an epoch to serve and no other to live.
func Alone(epoch int) func(Status) bool {
	return func(s Status) bool { return s.Serving == epoch && len(s.Epochs) == 1 }
}
