package hotrestart

import (
	"log/slog"
	"syscall"
	"time"
)

// Action is one thing the shell must do; its outcome comes back as an Event.
type Action any

type (
	// Read reads, checks and validates the newest input → Prepared.
	Read struct {
		ID    int
		Want  Want
		First bool // nobody of ours serves
		// Survey: find out who else lives, and wait while another supervisor hands over.
		Survey bool
	}
	// Adopt begins to watch another supervisor's epoch, which the input was
	// prepared to take over from → Exited when it is gone.
	Adopt struct {
		Epoch int
		Input Input
	}
	// Lookout watches for a successor of another supervisor → Sighted…. One at a
	// time: the next ends it.
	Lookout struct{ Epoch int }
	// Discard frees an input that will not be launched.
	Discard struct{ Input Input }
	// Launch takes the seat, stands the relay up and forks → Launched. Parent is
	// -1 for the first epoch.
	Launch struct {
		Epoch, Parent int
		Input         Input
		Deadline      time.Time
	}
	// Watch waits for LIVE, then verifies → WentLive, Unverified…, Verified.
	Watch struct{ Epoch int }
	// Commit passes drain_listeners to the parent.
	Commit struct{ Epoch int }
	// Publish sets the ready marker and the heartbeat.
	Publish struct{ Epoch int }
	// PublishUnready does without the marker: the node is out of service.
	PublishUnready struct{ Epoch int }
	// Health makes an epoch fail its health checks, or pass them again: while it
	// fails them, each answer tells its connection to close.
	Health struct {
		Epoch int
		Fails bool
	}
	// Guard watches the serving epoch's admin → Silenced.
	Guard struct{ Epoch int }
	// Ask asks an epoch's hot-restart socket for its stats → Asked.
	Ask struct{ Epoch int }
	// Withdraw takes the ready marker away.
	Withdraw struct{}
	// TakeBack removes a newcomer: drained, killed, flag cleared → Removed.
	// Hasty: it is killed at once.
	TakeBack struct {
		Epoch int
		Hasty bool
	}
	// Count watches a draining epoch's connections → Counted….
	Count struct{ Epoch int }
	// DrainAll asks the newest epoch to drain and watches them all → Drained.
	DrainAll struct{ Until time.Time }
	// Signal sends a signal to an epoch.
	Signal struct {
		Epoch  int
		Signal syscall.Signal
	}
	// Replace executes the program that was asked for in place of ours → UpgradeOver,
	// or in the new one TookOver.
	Replace struct{}
	// Forget frees what a dead epoch left: relay, socket names, descriptors.
	Forget struct{ Epoch int }
	// Reply answers callers of reload.
	Reply struct {
		Waiters []int
		Result  Result
	}
	// Log writes one line.
	Log struct {
		Level slog.Level
		Text  string
		Attrs []any
	}
	// Concluded: a try at a handoff has ended; after a commit it is the last of
	// that turn's actions about it.
	Concluded struct{ Handoff Handoff }
	// Released: an old epoch that had drained since From is gone. Why is a reason
	// of parents_ended, or "stop".
	Released struct {
		Epoch int
		From  time.Time
		Why   string
	}
	// Measure counts something; a nil *SupervisorMetrics ignores it. Names, units
	// and labels are those of the table in instruments.go.
	Measure struct {
		Name  string
		Value float64
		Label string
	}
)

// Result is what a caller of reload learns.
type Result struct {
	Outcome  string // committed, unchanged, refused, failed, stopping
	Epoch    int
	Error    string
	Log      []string
	Duration time.Duration
}
