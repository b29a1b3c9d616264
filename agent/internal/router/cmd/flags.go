package cmd

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/drain"
	"aether.internal/agent/internal/proxy/drain/wait"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/router"
)

// options are the flags as they are given.
type options struct {
	config, admin, xds, proc, health string
	marker, count, ignore            string
	awaitWaiter                      bool
	grace                            time.Duration
	delay, window, timeout           derived
	otlp, logFormat, logLevel        string
}

func (o *options) bind(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&o.config, "config", "/etc/atenet/router.yaml", "listeners, pools and clusters (`path`): a file, or a directory of *.yaml; watched")
	o.bindAddresses(f)
	f.StringVar(&o.health, "health-address", "0.0.0.0:8081", "`address` of /readyz, /healthz and /statusz")
	f.StringVar(&o.marker, "marker", wait.DefaultMarker, "`path` of the file that releases Envoy's preStop hook, on a volume that both containers mount")
	f.BoolVar(&o.awaitWaiter, "await-waiter", true, "drain Envoy only if drain-wait waits for the marker; false: each stop drains, for other hooks")
	f.DurationVar(&o.grace, "grace-period", drain.DefaultGrace, "the pod's terminationGracePeriodSeconds (`time`); the next three follow from it")
	f.Var(&o.delay, "drain-delay", "not ready, but serving as ever, for this `time`; by default 13s, or a quarter of a grace period below 52s")
	f.Var(&o.window, "envoy-drain-window", "Envoy may take this `time` to lose its connections; by default 15s of 60s")
	f.Var(&o.timeout, "drain-timeout", "parked and running requests may then take this `time`; by default what is left, 27s of 60s")
	f.StringVar(&o.count, "count-listeners", "", "only the connections of these listeners count (`regexp` of the whole name); empty: all")
	f.StringVar(&o.ignore, "ignore-listeners", "", "the connections of these listeners don't count (`regexp`): those of probes and scrapes")
	f.StringVar(&o.otlp, "otlp-endpoint", "", "push metrics to this OTLP gRPC collector (`address`), host:port or URL; empty: only if OTEL_EXPORTER_OTLP_ENDPOINT names one")
	f.StringVar(&o.logFormat, "log-format", "json", "`format` of the log: json or text")
	f.StringVar(&o.logLevel, "log-level", "info", "least `level` that is logged: debug, info, warn or error")
}

// bindAddresses are the flags that the bootstrap needs, too.
func (o *options) bindAddresses(f *pflag.FlagSet) {
	f.StringVar(&o.admin, "admin-address", "127.0.0.1:9901", "Envoy's admin (`address`), host:port or unix:PATH")
	f.StringVar(&o.xds, "xds-address", "127.0.0.1:18000", "where Envoy gets its configuration (`address`)")
	f.StringVar(&o.proc, "ext-proc-address", "127.0.0.1:18001", "where Envoy asks for a worker (`address`)")
}

// parse turns them into Options; its errors name the flag.
func (o *options) parse(f *pflag.FlagSet, lookup func(string) (string, bool)) (router.Options, error) {
	if err := fromEnvironment(f, lookup); err != nil {
		return router.Options{}, err
	}
	out := router.Options{Config: o.config, Marker: o.marker, AwaitWaiter: o.awaitWaiter}
	var err error
	for _, a := range []struct {
		flag, value string
		into        *envoy.Address
	}{{"admin-address", o.admin, &out.Admin}, {"xds-address", o.xds, &out.XDS}, {"ext-proc-address", o.proc, &out.ExtProc}, {"health-address", o.health, &out.Health}} {
		if *a.into, err = envoy.ParseAddress(a.value); err != nil {
			return out, fmt.Errorf("--%s: %w", a.flag, err)
		}
	}
	if out.Listeners, err = o.listeners(); err != nil {
		return out, err
	}
	out.Times, err = drain.Plan(drain.Times{Grace: o.grace, Delay: o.delay.time(), Window: o.window.time(), Timeout: o.timeout.time()})
	if err != nil {
		return out, fmt.Errorf("--grace-period, --drain-delay, --envoy-drain-window, --drain-timeout: %w", err)
	}
	return out, o.checkWords()
}

func (o *options) checkWords() error {
	if !slices.Contains([]string{"json", "text"}, o.logFormat) {
		return fmt.Errorf("--log-format %q: it is json or text", o.logFormat)
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return fmt.Errorf("--log-level %q: it is debug, info, warn or error", o.logLevel)
	}
	if o.marker == "" || o.config == "" {
		return fmt.Errorf("--marker and --config can't be empty")
	}
	return nil
}

func (o *options) listeners() (l drain.Listeners, err error) {
	for _, p := range []struct {
		flag, value string
		into        **regexp.Regexp
	}{{"count-listeners", o.count, &l.Include}, {"ignore-listeners", o.ignore, &l.Exclude}} {
		if p.value == "" {
			continue
		}
		if *p.into, err = drain.ListenerPattern(p.value); err != nil {
			return l, fmt.Errorf("--%s: %w", p.flag, err)
		}
	}
	return l, nil
}

// derived is a time that follows from the grace period unless it is given.
type derived struct {
	d     time.Duration
	given bool
}

func (d *derived) Set(s string) error {
	t, err := time.ParseDuration(s)
	if err != nil {
		return err
	}
	d.d, d.given = t, true
	return nil
}

func (d *derived) String() string {
	if !d.given {
		return ""
	}
	return d.d.String()
}

func (d *derived) Type() string { return "duration" }

func (d *derived) time() time.Duration {
	if !d.given {
		return drain.Derive
	}
	return d.d
}

// envName is the variable of a flag.
func envName(flag string) string {
	return "ATENET_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// fromEnvironment sets the flags that were not given from their variables. An
// empty variable counts as not set.
func fromEnvironment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var err error
	f.VisitAll(func(flag *pflag.Flag) {
		value, ok := lookup(envName(flag.Name))
		if err != nil || flag.Changed || flag.Name == "help" || !ok || value == "" {
			return
		}
		if e := flag.Value.Set(value); e != nil {
			err = fmt.Errorf("%s: invalid value %q for --%s: %w", envName(flag.Name), value, flag.Name, e)
		}
	})
	return err
}
