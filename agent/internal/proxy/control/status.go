package control

import "time"

// Modes of a handoff.
const (
	ModeRelay = "relay"
	ModeUDP   = "udp" // relay, but Envoy's own timer ends the parent
	ModePlain = "plain"
)

// States of a supervisor.
const (
	Starting  = "starting"  // the first epoch is not committed yet
	Serving   = "serving"   // also a state of an epoch
	Preparing = "preparing" // an epoch serves, a newcomer is on its way
	Draining  = "draining"  // also a state of an epoch
	Stopping  = "stopping"

	// Across pods:
	Successor = "successor" // the first epoch is to take over from another pod's
	Contested = "contested" // another pod's epoch is on its way to take over from ours
	Orphaned  = "orphaned"  // it had taken over, and has gone; the node is ours again
	Waiting   = "waiting"   // asked to stop, and serving until a successor has taken over
	// and Superseded: another pod's epoch serves in place of ours
)

// States of an epoch, beside Starting, Serving and Draining.
const (
	Live     = "live"     // LIVE, not committed yet
	Removing = "removing" // a newcomer that is being taken back
	Ending   = "ending"   // told to end, not reaped yet
)

// None stands for "no epoch", "no limit" and "not known" in numbers of a Status.
const None = -1

// Status is all that is known about a supervisor and its epochs.
type Status struct {
	Version      string         `json:"version"`
	PID          int            `json:"pid"`
	BaseID       uint32         `json:"base_id"`
	Mode         string         `json:"mode"`
	State        string         `json:"state"`
	Ready        bool           `json:"ready"`
	Drained      bool           `json:"drained"` // out of service, because somebody asked for it
	Serving      int            `json:"serving"` // epoch; None
	Epochs       []EpochStatus  `json:"epochs"`
	Pending      *PendingStatus `json:"pending,omitempty"`
	LastFailure  *FailureStatus `json:"last_failure,omitempty"`
	LastHandoff  *HandoffStatus `json:"last_handoff,omitempty"`
	Concurrency  int            `json:"concurrency"`
	ConfigPath   string         `json:"config_path"`
	EnvoyPath    string         `json:"envoy_path"`
	AdminAddress string         `json:"admin_address"`

	Relay          bool `json:"relay"`           // on, wherever Envoy's version allows it
	SegmentRepair  bool `json:"segment_repair"`  // on
	SegmentRepairs int  `json:"segment_repairs"` // so far

	Upgrades    int            `json:"upgrades"` // of the supervisor's own program, so far
	LastUpgrade *UpgradeStatus `json:"last_upgrade,omitempty"`
}

// UpgradeStatus is how the last upgrade of the supervisor's own program went.
type UpgradeStatus struct {
	At    time.Time `json:"at"`
	From  string    `json:"from"` // versions
	To    string    `json:"to"`
	Error string    `json:"error,omitempty"` // none: To runs
}

// EpochStatus is one Envoy that has been forked and not been reaped.
type EpochStatus struct {
	Epoch             int       `json:"epoch"`
	PID               int       `json:"pid"`
	State             string    `json:"state"`
	Foreign           bool      `json:"foreign,omitempty"` // another pod's
	StartedAt         time.Time `json:"started_at"`
	AgeSeconds        float64   `json:"age_seconds"`
	TimeLeftSeconds   float64   `json:"time_left_seconds"` // of a draining one, until its limit; None
	Connections       int       `json:"connections"`       // of its listeners; None when not known
	EnvoyVersion      string    `json:"envoy_version"`
	HotRestartVersion string    `json:"hot_restart_version"`
	ConfigHash        string    `json:"config_hash"` // SHA-256, hex
	BinaryHash        string    `json:"binary_hash"` // SHA-256, hex
}

// PendingStatus is a hot restart that was asked for and has not begun.
type PendingStatus struct {
	Triggers []string  `json:"triggers"` // "signal", "config", "binary", "reload"
	Force    bool      `json:"force"`
	Since    time.Time `json:"since"`
	WaitsFor string    `json:"waits_for"` // what has to happen first, as a phrase
}

// FailureStatus is the last newcomer that was refused or taken back.
type FailureStatus struct {
	At    time.Time `json:"at"`
	Epoch int       `json:"epoch"`
	Step  string    `json:"step"`
	Error string    `json:"error"`
	Log   []string  `json:"log,omitempty"` // its own start-up log
}

// History is the last tries at a handoff, newest first.
type History struct {
	Handoffs []TryStatus `json:"handoffs"`
}

// TryStatus is one try at a handoff and how it ended.
type TryStatus struct {
	HandoffStatus
	Outcome    string   `json:"outcome"`  // Committed, Refused, Failed, Superseded or Stopping
	Triggers   []string `json:"triggers"` // as of PendingStatus, and "start", "respawn", "heal"
	Step       string   `json:"step,omitempty"`
	Error      string   `json:"error,omitempty"`
	Forced     []string `json:"forced,omitempty"` // what was missing when it was committed by force
	DurationMS float64  `json:"duration_ms"`      // from the first trigger to the end
}

// DrainResult says what became of a drain or undrain.
type DrainResult struct {
	Drained bool `json:"drained"`
	Epoch   int  `json:"epoch"` // that serves; None
	Told    bool `json:"told"`  // it fails, or passes, its health checks by now
}

// HandoffStatus is the last handoff that was committed.
type HandoffStatus struct {
	At           time.Time `json:"at"`
	From         int       `json:"from"` // None at the first start
	To           int       `json:"to"`
	Milliseconds StepTimes `json:"milliseconds"`
}

// StepTimes are the milliseconds that each step of a handoff took.
type StepTimes struct {
	Prepare float64 `json:"prepare"` // until the fork: validate, snapshot, seat, relay
	Live    float64 `json:"live"`    // fork to LIVE
	Verify  float64 `json:"verify"`  // LIVE to verified, and so committed
}

// Total is the sum of all steps.
func (t StepTimes) Total() float64 { return t.Prepare + t.Live + t.Verify }
