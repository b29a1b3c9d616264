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
		Peer   *Peer    // another supervisor's epoch to take over from; nil: there is none, or it wasn't looked for
	}
	// Awaits: a read waits for what another supervisor does.
	Awaits struct {
		ID   int
		What string // a phrase; "": it goes on
	}
	// Sighted is a look at the seat after our newest committed epoch's.
	Sighted struct {
		Epoch     int  // whose seat it would be
		Lives     bool // another supervisor's Envoy is there
		Relay     bool // and its supervisor answers in our epoch's place when that ends
		Drained   bool // our own epoch has closed its listening sockets
		AdminLost bool // our own epoch's admin answers no more; only when nobody lives there
	}
	// Followed: another supervisor's epoch has attached to our newcomer, which it
	// took for committed after waiting for as long as a handoff may last. We were
	// stopped meanwhile.
	Followed struct{ Epoch int }
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
		Rival  bool // another supervisor's successor of this epoch lives
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
	// UpgradeWanted: somebody wants another program in place of ours.
	UpgradeWanted struct{}
	// UpgradeOver: it will not be. From and To are versions.
	UpgradeOver struct{ From, To, Error string }
	// TookOver: our program has replaced another one, whose state this was.
	TookOver struct{ From, To string }
	// Tick: time has passed.
	Tick struct{}
)

// Refusal is why an input can't be launched.
type Refusal struct {
	Step string // what was being done
	Text string // one sentence
	Code int    // the exit code if this is the first start
	Log  []string
	// Again: another supervisor was faster, or has gone; who lives must be looked
	// at anew.
	Again bool
}

// Peer is an epoch of another supervisor.
type Peer struct {
	Epoch int
	Pod   string // whose it is, as far as it is known
}
