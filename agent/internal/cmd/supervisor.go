package cmd

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"aether.internal/agent/internal/proxy/hotrestart"
)

const supervisorLong = `Runs Envoy and replaces it by a new epoch, without dropping a connection, when
its bootstrap or its binary changes, at SIGHUP, or at "agent proxyctl reload".
It is meant as a container's entrypoint, and works on a plain host as well.

Every flag is also an environment variable: --base-id is AETHER_BASE_ID. A flag
wins; an empty variable counts as not set; AETHER_ENVOY_ARG has one argument a
line. What follows "--" is given to Envoy if it starts with a dash. Otherwise it
is Envoy's whole command line as it stood before, and the bootstrap, base-id,
times and workers are taken from there.`

func (a app) supervisorCommand() *cobra.Command {
	var o supervisorOptions
	c := &cobra.Command{
		Use:   "proxy-supervisor [flags] [-- [envoy] -envoy-flag ...]",
		Short: "Run Envoy and hand over to a new one at every change",
		Long:  supervisorLong,
		Example: "  agent proxy-supervisor --config /etc/envoy/envoy.yaml -- -l info --service-node edge-1\n" +
			"  agent proxy-supervisor -- envoy -c /etc/envoy/envoy.yaml -l info",
		Args: envoyArguments,
	}
	o.bind(c.Flags())
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		return fromEnvironment(c.Flags(), a.lookupEnv, nil)
	}
	c.RunE = func(c *cobra.Command, args []string) error { return a.runSupervisor(c, &o, args) }
	return c
}

// envoyArguments takes what follows "--" and nothing else.
func envoyArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 && c.ArgsLenAtDash() != 0 {
		return usageError(`unexpected argument %q; Envoy's own arguments, or its whole command line, come after "--"`, args[0])
	}
	return nil
}

// install needs nothing of the rest of the configuration, right or wrong: an
// init container may get the same variables as the supervisor.
func (a app) install(what installation) error {
	program, err := a.executable()
	if err != nil {
		return fmt.Errorf("--%s: %w", flagInstall, err)
	}
	return what.do(program)
}

func (a app) runSupervisor(c *cobra.Command, o *supervisorOptions, args []string) error {
	if o.install.wanted() {
		return a.install(o.install)
	}
	if o.readiness {
		return a.checkReadiness(c.Flags(), o)
	}
	cfg, err := a.configure(c.Flags(), o, args)
	if err != nil {
		return err
	}
	if asked, err := a.checkState(cfg); asked {
		return err
	}
	atOnce, _ := newLogger(a.stderr, o.logFormat, "info", a.terminal(a.stderr))
	out := newSink(a.stderr, atOnce)
	defer out.close()
	log, level := newLogger(out, o.logFormat, o.logLevel, a.terminal(a.stderr))
	cfg.LogLevel, cfg.FlushLog = level, out.flush
	if err := raiseFileLimit(); err != nil {
		log.Warn("the limit of open files stays as it is", "error", err)
	}
	tel := hotrestart.TelemetryConfig{OTLPEndpoint: o.otlpEndpoint, ServiceVersion: cfg.Version, BaseID: cfg.BaseID, Log: log}
	err = a.supervise(c.Context(), cfg, tel, log)
	if err == nil {
		return nil
	}
	log.Error("the supervisor ends", "error", err, "exit_code", hotrestart.ExitCode(err))
	return &reported{fmt.Errorf("proxy-supervisor: %w", err)}
}

// configure makes flags, variables and Envoy's command line into one checked
// configuration, and the places that are the user's own.
func (a app) configure(f *pflag.FlagSet, o *supervisorOptions, args []string) (hotrestart.Config, error) {
	cfg, line := o.cfg, adopted{}
	if isAdopted(args) {
		var err error
		if line, err = a.adopt(args); err != nil {
			return cfg, err
		}
		if err := line.into(&cfg, f); err != nil {
			return cfg, err
		}
	} else {
		cfg.ExtraArgs = append(cfg.ExtraArgs, args...)
	}
	cfg.NoRelay, cfg.NoSegmentRepair = !o.relay, !o.segmentRepair
	cfg.Version = buildVersion().Version
	a.places.fallBack(&cfg, f)
	line.place(&cfg)
	if err := absolute(&cfg); err != nil {
		return cfg, err
	}
	if err := Check(cfg); err != nil {
		return cfg, err
	}
	if err := hotrestart.CheckEndpoint(o.otlpEndpoint); err != nil {
		return cfg, usageError("--%s: %w", flagOTLP, err)
	}
	if err := a.places.own(cfg); err != nil {
		return cfg, err
	}
	return cfg, a.writeInline(line, cfg)
}
