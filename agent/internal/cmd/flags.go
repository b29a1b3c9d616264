package cmd

import (
	"time"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// Defaults of the directories. An ordinary user who lacks them gets others
// (places.go).
const (
	defaultStateDir      = "/run/aether/hotrestart"
	defaultReadyMarker   = "/var/run/aether-proxy/ready"
	defaultControlSocket = "/var/run/aether-proxy/control.sock"
)

// Names of flags that other files refer to.
const (
	flagStateDir       = "state-dir"
	flagReadyMarker    = "ready-marker"
	flagControlSocket  = "control-socket"
	flagBaseID         = "base-id"
	flagDrainTime      = "drain-time"
	flagParentShutdown = "parent-shutdown-time"
	flagHandoff        = "handoff-deadline"
	flagSuccessor      = "successor-wait"
	flagUnresponsive   = "admin-unresponsive-deadline"
	flagConcurrency    = "concurrency"
	flagOTLP           = "otlp-endpoint"
)

// supervisorOptions are the flags of proxy-supervisor. Switches that are on by
// default have no place in Config, whose zero values mean the default.
type supervisorOptions struct {
	cfg                  hotrestart.Config
	relay, segmentRepair bool
	logFormat, logLevel  string
	install              installation
	otlpEndpoint         string
	readiness            bool
}

func (o *supervisorOptions) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	o.bindEnvoy(f)
	o.bindHandoff(f)
	o.bindPlaces(f)
	f.StringVar(&o.otlpEndpoint, flagOTLP, "",
		"push metrics and traces to this OTLP gRPC collector (`address`), host:port or URL; empty: only if OTEL_EXPORTER_OTLP_ENDPOINT names one")
	f.VarP(choice(&o.logFormat, "auto", "json", "text"), "log-format", "",
		"`format` of our log: json, text, or auto (text on a terminal, else json)")
	f.VarP(choice(&o.logLevel, "info", "debug", "warn", "error"), "log-level", "",
		"least `level` that is logged: debug, info, warn or error")
	o.install.bind(f)
	bindReadiness(f, &o.readiness)
}

func (o *supervisorOptions) bindEnvoy(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.EnvoyPath, "envoy-path", "/usr/local/bin/envoy", "the Envoy binary (`path`)")
	f.StringVar(&o.cfg.ConfigPath, "config", "/etc/envoy/envoy.yaml", "the bootstrap (`path`), YAML or JSON")
	f.Var((*baseID)(&o.cfg.BaseID), flagBaseID,
		"Envoy's --base-id (`number`), the same for all epochs that hand over to each other")
	f.StringArrayVar(&o.cfg.ExtraArgs, "envoy-arg", nil, "an `argument` for Envoy; may be repeated")
	f.IntVar(&o.cfg.Concurrency, flagConcurrency, 0,
		"Envoy's `workers`, the same for all epochs; 0: from CPU affinity and cgroup limit")
	f.StringVar(&o.cfg.AdminAddress, "admin-address", "",
		"Envoy's admin (`address`), host:port or unix:PATH; empty: from the bootstrap")
}

func (o *supervisorOptions) bindHandoff(f *pflag.FlagSet) {
	f.BoolVar(&o.cfg.WatchConfig, "watch-config", true, "a changed bootstrap or binary is a trigger")
	f.DurationVar(&o.cfg.DrainTime, flagDrainTime, 25*time.Second,
		"over this `time` an old epoch tells its connections to close; whole seconds")
	f.DurationVar(&o.cfg.ParentShutdownTime, flagParentShutdown, 40*time.Second,
		"limit of a draining epoch (`time`); whole seconds, more than --drain-time")
	f.DurationVar(&o.cfg.AdminUnresponsiveDeadline, flagUnresponsive, hotrestart.DefaultAdminUnresponsiveDeadline,
		"how long the serving epoch may answer neither on its admin nor on its hot-restart socket before it is ended")
	f.DurationVar(&o.cfg.HandoffDeadline, flagHandoff, hotrestart.DefaultHandoffDeadline,
		"a new epoch must be verified this `time` after its fork, the first one too")
	f.DurationVar(&o.cfg.SuccessorWait, flagSuccessor, 0,
		"asked to stop, serve on for this `time` if no other pod's epoch has come to take over; 0: not at all")
	f.VarP(choice(&o.cfg.Validate, hotrestart.ValidateAlways, hotrestart.ValidateChanges, hotrestart.ValidateNever),
		"validate", "", "`when` a bootstrap is validated: always, changes (only what is new) or never")
	f.StringVar(&o.cfg.VerifyCommand, "verify-command", "", "a `command` that must succeed before a new epoch is committed")
	f.BoolVar(&o.relay, "relay", true, "stand between two epochs; false: plain mode, where Envoy commits itself")
	f.BoolVar(&o.cfg.AdminPerEpoch, "admin-per-epoch", false,
		"give each epoch an admin socket of its own; the serving one is linked at STATE-DIR/admin.sock")
	f.DurationVar(&o.cfg.GracePeriod, "grace-period", 0,
		"`time` from SIGTERM to SIGKILL (terminationGracePeriodSeconds, TimeoutStopSec=), for the doctor to judge; 0: not known")
	f.BoolVar(&o.segmentRepair, "segment-repair", true, "clear the shared segment's flag after a failed start")
}

func (o *supervisorOptions) bindPlaces(f *pflag.FlagSet) {
	f.StringVar(&o.cfg.StateDir, flagStateDir, defaultStateDir, "`directory` of the heartbeat and the epochs' sockets")
	f.StringVar(&o.cfg.ReadyMarkerPath, flagReadyMarker, defaultReadyMarker, "`path` of the file that says that we serve")
	f.StringVar(&o.cfg.ControlSocket, flagControlSocket, defaultControlSocket, "`path` of the control socket")
}
