package drain

import "time"

// Phase of a pod's end. They follow in this order; Ending and Draining are left
// out where there is nothing to drain.
type Phase string

const (
	Delaying  Phase = "delay"     // not ready; serves as ever
	Ending    Phase = "ending"    // is it the pod that ends, or this container alone?
	Draining  Phase = "draining"  // Envoy tells its clients to go
	Finishing Phase = "finishing" // what stands beside Envoy ends
	Marking   Phase = "marking"   // the marker is written
	Over      Phase = "over"
)

// Phases are all there are.
var Phases = []Phase{Delaying, Ending, Draining, Finishing, Marking, Over}

// Outcome is how a drain went.
type Outcome struct {
	// Why Envoy's drain was over: see the constants.
	Envoy string
	// Left is the last number of connections, -1 when none was counted.
	Left int
	// Hurried: a second stop skipped the waits.
	Hurried bool
	// Finish is what could not end in its time, nil when all did.
	Finish error
	// Marker is why there is none, nil when it was written, or not to be.
	Marker error
}

// How Envoy's part was over.
const (
	Idle      = "idle"    // no connection, twice in a row
	Window    = "window"  // its window was over before
	Gone      = "gone"    // its process had ended
	NotEnding = "restart" // only this container is stopping: Envoy was left alone
	Unused    = "unused"  // nobody was ever ready, and nobody came
	Skipped   = "skipped" // a second stop
)

// Status is where a drain stands.
type Status struct {
	Phase       Phase     `json:"phase"`
	Since       time.Time `json:"since"`
	Connections int       `json:"connections"` // at the last count, -1: unknown
}
