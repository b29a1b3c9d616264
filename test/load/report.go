package load

import (
	"maps"
	"slices"
	"time"
)

// Report is what became of a run, or of its part until now.
type Report struct {
	Start    time.Time     `json:"start"`
	Duration time.Duration `json:"duration_ns"`
	Kinds    []KindReport  `json:"kinds"`    // in the order of the plan
	Errors   []Error       `json:"errors"`   // the first ones of each kind, in order of time
	Timeline []Bucket      `json:"timeline"` // without holes, from the start
}

// KindReport counts one kind. Started = OK + Failed + Abandoned + Outstanding.
type KindReport struct {
	Kind string `json:"kind"`
	TLS  bool   `json:"tls"`

	Started     int `json:"started"`
	OK          int `json:"ok"`
	Outstanding int `json:"outstanding"` // not finished yet
	Abandoned   int `json:"abandoned"`   // cut by us, because the run's context ended

	Failed  int `json:"failed"`  // the sum of the headings below
	Refused int `json:"refused"` // nobody accepted the connection
	Reset   int `json:"reset"`   // RST, RST_STREAM or a broken pipe
	Cut     int `json:"cut"`     // ended in good order, but before its end
	Timeout int `json:"timeout"`
	Wrong   int `json:"wrong"`   // an answer, but not the right one: status, bytes, checksum
	Other   int `json:"other"`   // anything else: see Errors
	Strict  int `json:"strict"`  // right after a retry, which Plan.Strict forbids
	Overrun int `json:"overrun"` // due, but not started: too many outstanding

	// ToldToClose counts connections given up because the server asked for
	// it: Connection: close, GOAWAY. For gRPC: every reconnect.
	ToldToClose int `json:"told_to_close"`
	// IdleClosed counts kept connections found closed between operations,
	// before anything was sent on them.
	IdleClosed int `json:"idle_closed"`
	// Retried counts operations sent again on another connection because the
	// kept one ended before any byte of an answer (RFC 9110, 9.2.2: a GET
	// may be) or because GOAWAY said that it wasn't processed (RFC 9113, 6.8).
	Retried int `json:"retried"`

	// Latency counts from when the operation was due, successes only; a long
	// kind's is what it took beyond its StreamDuration.
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
	// LongestGap is the longest time without a success, from the first
	// operation due to the last one; a long kind's StreamDuration is taken
	// off each end. Never much below 1/Rate.
	LongestGap time.Duration `json:"longest_gap_ns"`

	Epochs map[string]int `json:"epochs"` // answers by x-epoch header; raw TCP has none
}

// Error is one failed operation.
type Error struct {
	Kind    string        `json:"kind"`
	TLS     bool          `json:"tls"`
	Offset  time.Duration `json:"offset_ns"` // from the start of the run to the failure
	Heading string        `json:"heading"`   // the JSON name of the counter it is in
	Epoch   string        `json:"epoch,omitempty"`
	Message string        `json:"message"`
}

// Bucket is one point of the timeline, over all kinds, by time of ending.
type Bucket struct {
	OffsetMS int64          `json:"offset_ms"` // of its beginning, from the start of the run
	OK       int            `json:"ok"`
	Failed   int            `json:"failed"`
	P50US    int64          `json:"p50_us"` // microseconds, successes only
	P99US    int64          `json:"p99_us"` // the same
	Epochs   map[string]int `json:"epochs,omitempty"`
}

// Failures is the number of failed operations. Overruns are not among them.
func (r Report) Failures() int { return r.sum(func(k *KindReport) int { return k.Failed }) }

// Started is the number of operations begun.
func (r Report) Started() int { return r.sum(func(k *KindReport) int { return k.Started }) }

// OK is the number of operations that succeeded.
func (r Report) OK() int { return r.sum(func(k *KindReport) int { return k.OK }) }

// Retried is the number of operations that needed a permitted retry.
func (r Report) Retried() int { return r.sum(func(k *KindReport) int { return k.Retried }) }

// Overruns is the number of operations that were due and not started. A run
// with overruns put less load than its plan says.
func (r Report) Overruns() int { return r.sum(func(k *KindReport) int { return k.Overrun }) }

func (r Report) sum(of func(*KindReport) int) int {
	n := 0
	for i := range r.Kinds {
		n += of(&r.Kinds[i])
	}
	return n
}

// Epochs is every epoch that answered, with the number of answers.
func (r Report) Epochs() map[string]int {
	all := map[string]int{}
	for _, k := range r.Kinds {
		for epoch, n := range k.Epochs {
			all[epoch] += n
		}
	}
	return all
}

// Kind is the report of one kind; zero if the plan has none.
func (r Report) Kind(kind string, tls bool) KindReport {
	i := slices.IndexFunc(r.Kinds, func(k KindReport) bool { return k.Kind == kind && k.TLS == tls })
	if i < 0 {
		return KindReport{}
	}
	return r.Kinds[i]
}

// counter is the field that a heading names.
func (k *KindReport) counter(heading string) *int {
	switch heading {
	case refused:
		return &k.Refused
	case reset:
		return &k.Reset
	case cut:
		return &k.Cut
	case timedOut:
		return &k.Timeout
	case wrong:
		return &k.Wrong
	case strict:
		return &k.Strict
	default:
		return &k.Other
	}
}

func (b Bucket) clone() Bucket {
	b.Epochs = maps.Clone(b.Epochs)
	return b
}
