package hotrestart

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"
)

// What Config.Validate may say.
const (
	ValidateAlways  = "always"  // before every start
	ValidateChanges = "changes" // before a start whose bootstrap or binary was not validated yet
	ValidateNever   = "never"
)

// Config is all a Supervisor needs to know. Paths may be relative; the command
// makes them absolute. The checks of values that depend on each other are in
// agent/internal/cmd (Check); New takes them as done.
type Config struct {
	// EnvoyPath names the Envoy binary.
	EnvoyPath string

	// ConfigPath names the bootstrap, YAML or JSON. What was validated is what
	// runs: each epoch gets a snapshot of it (rule 3).
	ConfigPath string

	// BaseID is Envoy's --base-id: it names the shared segment and the seats, so
	// it must be the same for all epochs that shall hand over to each other.
	// At most MaxBaseID.
	BaseID uint32

	// DrainTime is Envoy's --drain-time-s: over this time an old epoch tells more
	// and more of its connections to close. Whole seconds, at least one.
	DrainTime time.Duration

	// ParentShutdownTime is the limit of a draining epoch: it is ended when it has
	// no connection left, at the latest this long after the commit. Whole seconds,
	// more than DrainTime. Envoy's own --parent-shutdown-time-s is derived from it.
	ParentShutdownTime time.Duration

	// ExtraArgs are Envoy's own arguments, given to every epoch, as separate words
	// ("-l", "info"). A --concurrency among them counts like Concurrency.
	ExtraArgs []string

	// WatchConfig makes a change of the bootstrap's content or of the binary a
	// hot restart.
	WatchConfig bool

	// StateDir holds the heartbeat and the epochs' sockets (mode 0700). Required.
	StateDir string

	// ReadyMarkerPath names the file that is there, locked by us, while our own
	// committed epoch serves (rule 13). Required.
	ReadyMarkerPath string

	// AdminAddress is Envoy's admin, "host:port" or "unix:PATH". Empty: taken from
	// the bootstrap. One that contradicts the bootstrap is refused.
	AdminAddress string

	// HandoffDeadline is how long a new epoch may take from its fork until it is
	// verified, the first one too. 0 means DefaultHandoffDeadline.
	HandoffDeadline time.Duration

	// AdminUnresponsiveDeadline is how long our newest epoch may be silent on its
	// admin and its hot-restart socket before it is ended. 0 means the default.
	AdminUnresponsiveDeadline time.Duration

	// SuccessorWait is how long a supervisor that is asked to stop goes on serving
	// when no other pod's epoch is there to take over (rule 9). 0: not at all.
	SuccessorWait time.Duration

	// Concurrency is the number of Envoy's workers, pinned for all epochs (fact 9).
	// 0: from the CPU affinity and the cgroup's limit, rounded up.
	Concurrency int

	// ControlSocket names the Unix socket that proxyctl talks to. Empty: none.
	ControlSocket string

	// Validate is one of ValidateAlways, ValidateChanges, ValidateNever; empty
	// means always. A validator that cannot run never stops a first start.
	Validate string

	// VerifyCommand is the user's own check of a LIVE newcomer, a program and its
	// arguments; exit code 0 means verified. Empty: none.
	VerifyCommand string

	// NoRelay makes handoffs plain: a newcomer commits itself when it is LIVE, and
	// only Envoy's own timer ends a parent. The lesser mode.
	NoRelay bool

	// AdminPerEpoch gives each epoch an admin socket of its own, by a config
	// overlay, instead of the one the bootstrap names: it lives through the drain,
	// and a newcomer that fails takes nobody's admin away (fact 6). The newest
	// committed one is linked at AdminLink. Needs the relay.
	AdminPerEpoch bool

	// GracePeriod is what whoever stops us gives until SIGKILL; only the doctor
	// asks. 0: not known.
	GracePeriod time.Duration

	// NoSegmentRepair leaves the shared segment's flag as a failed newcomer left
	// it, so that every further handoff fails (fact 2).
	NoSegmentRepair bool

	// Version is our own build version, for status and metrics.
	Version string

	// Notify is told how the supervisor is, whenever that changes; it must not
	// block. nil: nobody is.
	Notify func(Notice)

	// Flush sends what telemetry has gathered, before our program is replaced by
	// another; ctx bounds it. nil: there is none.
	Flush func(ctx context.Context)

	// FlushLog writes what the log has buffered, within a moment. nil: nothing is.
	FlushLog func()

	// LogLevel is what the logger given to New obeys, so that it can be changed at
	// run time. nil: it can't.
	LogLevel *slog.LevelVar

	// Tracer gets each try at a handoff as a trace. nil: there are none.
	Tracer trace.Tracer
}

// MaxBaseID is the largest base-id: Envoy multiplies it by ten, in 32 bits
// with a sign, and what overflows ends in another node's segment (fact 12).
const MaxBaseID = 214748364

// Defaults of what Config leaves at zero.
const (
	DefaultHandoffDeadline           = 2 * time.Minute
	DefaultAdminUnresponsiveDeadline = 30 * time.Second
)
