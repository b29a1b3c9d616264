package hotrestart

// This file is the table of all instruments. docs/metrics.md has it for people,
// and a test compares the two.

// Prefix is what every instrument's name starts with.
const Prefix = "aether.supervisor."

// Kinds of instruments.
const (
	Counter   = "counter"
	Gauge     = "gauge"
	Histogram = "histogram"
)

// Instrument is one row.
type Instrument struct {
	Name    string   // below Prefix
	Kind    string   // Counter, Gauge or Histogram
	Unit    string   // UCUM
	Key     string   // of its one attribute, "" for none
	Values  []string // all that the attribute can be; anything else is recorded as "other"
	Meaning string
	bounds  []float64 // of a histogram
}

var (
	// From a small static bootstrap, 50 ms, to the default deadline and beyond.
	handoffBounds = []float64{0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}
	// LIVE to verified is one look at the admin, or the time until it is complete.
	waitBounds = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
	// From an idle parent to streams of hours.
	drainBounds = []float64{0.1, 0.5, 1, 2, 5, 10, 25, 40, 60, 120, 300, 600, 1800, 3600, 7200, 14400}
)

// steps are what a newcomer or an input can fail at; those of Refusal and
// takeBack, as docs/troubleshooting.md explains them.
var (
	refusalSteps = []string{
		"look who lives", "compare concurrency", "read the bootstrap", "open the Envoy binary", "check the bootstrap", "compare hot-restart versions",
		"check the limit of open files", "snapshot the bootstrap", "validate",
	}
	takeBackSteps = []string{"take the seat", "prepare the seat", "start Envoy", "start", "handoff deadline", "superseded"}
)

// Instruments is the table.
var Instruments = []Instrument{
	{Name: "epoch", Kind: Gauge, Unit: "{epoch}", Meaning: "the epoch that serves; −1: none does"},
	{Name: "generations", Kind: Gauge, Unit: "{process}", Meaning: "Envoys of this supervisor that are alive"},
	{Name: "restart_triggers", Kind: Counter, Unit: "{trigger}", Key: "trigger",
		Values:  []string{"start", "signal", "config", "binary", "reload", "respawn", "heal"},
		Meaning: "wishes for a handoff, before they collapse"},
	{Name: "handoff.duration", Kind: Histogram, Unit: "s", Key: "outcome", bounds: handoffBounds,
		Values:  []string{"committed", "started", "refused", "failed", "superseded", "stopping"},
		Meaning: "from the trigger to how the try ended; `started` is a first start, `superseded` gave way to a newer input"},
	{Name: "commit_wait.duration", Kind: Histogram, Unit: "s", bounds: waitBounds,
		Meaning: "from LIVE to the commit: so long Envoy's drain request was withheld"},
	{Name: "config_validation_failures", Kind: Counter, Unit: "{failure}", Key: "step", Values: refusalSteps,
		Meaning: "handoffs refused before anything was started"},
	{Name: "rollbacks", Kind: Counter, Unit: "{newcomer}", Key: "step", Values: takeBackSteps,
		Meaning: "newcomers that were taken back"},
	{Name: "segment_repairs", Kind: Counter, Unit: "{repair}",
		Meaning: "flags of the shared segment that a dead newcomer had left, cleared"},
	{Name: "parents_ended", Kind: Counter, Unit: "{process}", Key: "reason",
		Values:  []string{"idle", "limit", "forced", "protocol", "early"},
		Meaning: "old epochs that ended: idle, at their limit, by `--force`, by Envoy's own timer, or by themselves before their time"},
	{Name: "drain.duration", Kind: Histogram, Unit: "s", bounds: drainBounds,
		Meaning: "from the commit of its successor to an old epoch's end"},
	{Name: "child_exits", Kind: Counter, Unit: "{process}", Key: "kind",
		Values:  []string{"expected", "crash", "early", "newcomer", "taken_back"},
		Meaning: "Envoys that ended: as told, the serving one by itself, a draining one before its time, a newcomer by itself, a newcomer that was taken back"},
	{Name: "wedges", Kind: Counter, Unit: "{process}", Key: "reason", Values: []string{"unresponsive"},
		Meaning: "serving epochs that answered nowhere and were ended"},
	{Name: "ready_transitions", Kind: Counter, Unit: "{transition}", Key: "ready", Values: []string{"true", "false"},
		Meaning: "publications and withdrawals of the ready marker"},
	{Name: "predecessor_detected", Kind: Counter, Unit: "{start}",
		Meaning: "starts that found a living Envoy of this base-id"},
}
