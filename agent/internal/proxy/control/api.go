// Package control is the supervisor's control socket and its client: HTTP with
// JSON bodies over a Unix socket of mode 0600. Looking is GET, acting is POST.
//
//	GET  /v1/status  → Status
//	POST /v1/reload  ReloadRequest → ReloadResult
//	POST /v1/upgrade UpgradeRequest → UpgradeResult
//	GET  /v1/history → History
//	GET  /v1/doctor  → Diagnosis
//	POST /v1/drain   → DrainResult
//	POST /v1/undrain → DrainResult
//	GET  /v1/log     → LogLevel
//	POST /v1/log     LogLevel → LogLevel
//
// Every other answer is {"error": "one sentence"} with a status of 4xx or 5xx.
package control

import (
	"context"
	"encoding/json"
	"math"
	"time"
)

// Supervisor is what the server asks. Its methods are called from several
// goroutines at once; ctx ends when the client has gone or the server stops.
type Supervisor interface {
	// Status answers at once, whatever else is going on.
	Status(ctx context.Context) (Status, error)

	// Reload asks for a hot restart. With Wait it returns when that one was
	// committed or has failed, else as soon as it is on its way. How a reload went
	// is in the result; an error means that there was none.
	Reload(ctx context.Context, req ReloadRequest) (ReloadResult, error)

	// Upgrade replaces the supervisor's own program. It returns when that is about
	// to happen, or won't; which of both came of it the next Status tells.
	Upgrade(ctx context.Context, req UpgradeRequest) (UpgradeResult, error)

	// Drain takes the node out of the traffic, or with out false puts it back.
	Drain(ctx context.Context, out bool) (DrainResult, error)

	// History tells the last tries at a handoff.
	History(ctx context.Context) (History, error)

	// Doctor looks at what may go wrong here.
	Doctor(ctx context.Context) (Diagnosis, error)

	// SetLog sets the least level that is logged from now on, unless level is
	// empty, and tells which one it is. It fails for a word that is no level.
	SetLog(ctx context.Context, level LogLevel) (LogLevel, error)
}

// Diagnosis is what the doctor looked at, all of it.
type Diagnosis struct {
	Findings []Finding `json:"findings"`
}

// Finding is one thing that was looked at.
type Finding struct {
	Check string `json:"check"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`        // a sentence
	Do    string `json:"do,omitempty"` // what to do; only when not OK
}

// LogLevel is the least level that is logged.
type LogLevel struct {
	Level string `json:"level"` // "debug", "info", "warn" or "error"
}

// ReloadRequest asks for a hot restart.
type ReloadRequest struct {
	Force bool `json:"force,omitempty"` // rules 2 and 4; never overrides validation, version, concurrency
	Wait  bool `json:"wait,omitempty"`
}

// UpgradeRequest asks for another program in place of the supervisor's.
type UpgradeRequest struct {
	Path  string `json:"path,omitempty"`  // of the new program; "": where the old one was started from
	Check bool   `json:"check,omitempty"` // only ask whether it could take over
}

// UpgradeResult says what came of it: Accepted, Refused, or for a check Unchanged.
type UpgradeResult struct {
	Outcome string `json:"outcome"`
	To      string `json:"to"` // the new program's version, as far as it has said
	Error   string `json:"error,omitempty"`
}

// Outcomes of a reload; Stopping is one as well.
const (
	Committed = "committed" // the new epoch serves
	Refused   = "refused"   // nothing was forked: validation, version or concurrency
	Failed    = "failed"    // the new epoch was taken back; the old one serves
	Unchanged = "unchanged" // there was nothing to do
	Accepted  = "accepted"  // on its way (no Wait)

	Superseded = "superseded" // taken back for a newer input; in the history only
)

// ReloadResult says how a reload went.
type ReloadResult struct {
	Outcome  string        `json:"outcome"`
	Epoch    int           `json:"epoch"` // the new epoch, or the one that serves when there is none
	Error    string        `json:"error,omitempty"`
	Log      []string      `json:"log,omitempty"` // the new epoch's own start-up log
	Duration time.Duration `json:"-"`             // in JSON: duration_ms
}

// plainResult is ReloadResult without its methods.
type plainResult ReloadResult

type resultJSON struct {
	plainResult
	DurationMS float64 `json:"duration_ms"`
}

// MarshalJSON writes the duration in milliseconds, as people and jq read it.
func (r ReloadResult) MarshalJSON() ([]byte, error) {
	return json.Marshal(resultJSON{plainResult(r), Milliseconds(r.Duration)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (r *ReloadResult) UnmarshalJSON(data []byte) error {
	var in resultJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*r = ReloadResult(in.plainResult)
	r.Duration = time.Duration(in.DurationMS * float64(time.Millisecond))
	return nil
}

// Milliseconds is d in milliseconds, to a tenth.
func Milliseconds(d time.Duration) float64 {
	return math.Round(float64(d)/float64(time.Millisecond)*10) / 10
}
