package hotrestart

import "time"

// Event is one thing that happened, and when.
type Event struct {
	At time.Time
	Is any // one of the types below
}

type (
	// Triggered: somebody wants a handoff.
	Triggered struct {
		By     Trigger
		Force  bool
		Waiter int // 0: nobody waits for the outcome
	}
	// Prepared: reading and validating an input has ended.
	Prepared struct {
		ID     int
		Input  Input
		Failed *Refusal // nil when the input is good
	}
	// Launched: the fork has happened, or could not.
	Launched struct {
		Epoch, Pid int
		Failed     *Refusal
	}
	// WentLive: the newcomer would drain its parent now.
	WentLive struct{ Epoch int }
	// Verified: everything the newcomer must have is there.
	Verified struct{ Epoch int }
	// Unverified: a look at the newcomer missed something; the next follows.
	Unverified struct {
		Epoch   int
		Missing []string
	}
	// Answered: an epoch's own admin has answered for the first time.
	Answered struct{ Epoch int }
	// Exited: an epoch's process was reaped.
	Exited struct {
		Epoch  int
		Status string
		Code   int // the supervisor's own exit code if this ends it
		Log    []string
	}
	// Removed: a newcomer has been taken back; nothing of it is left.
	Removed struct {
		Epoch     int
		TookAdmin bool // its parent has closed the admin they share
		Repaired  bool // the flag it had left in the shared segment was cleared
		Log       []string
	}
	// Counted: a look at an epoch's connections; -1 when nobody can tell.
	Counted struct{ Epoch, Connections int }
	// Silenced: an epoch's own admin answers no more, or again when Ends.
	Silenced struct {
		Epoch int
		Ends  bool
	}
	// Asked: whether an epoch's hot-restart socket has answered.
	Asked struct {
		Epoch   int
		Answers bool
	}
	// Drained: no epoch has a connection left.
	Drained struct{}
	// Stop: SIGTERM, SIGINT, or the context's end.
	Stop struct{ By string }
	// OutOfService: somebody takes this Envoy out of the traffic, or puts it back.
	OutOfService struct{ Yes bool }
	// Reopen: SIGUSR1.
	Reopen struct{}
	// Tick: time has passed.
	Tick struct{}
)

// Refusal is why an input can't be launched.
type Refusal struct {
	Step string // what was being done
	Text string // one sentence
	Code int    // the exit code if this is the first start
	Log  []string
}
