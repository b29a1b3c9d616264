package cmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/hotrestart"
)

const supervisorLong = `Runs Envoy and replaces it by a new epoch, without dropping a connection, when
its bootstrap or its binary changes, at SIGHUP, or at "agent proxyctl reload".
It is meant as a container's entrypoint, and works on a plain host as well.

Every flag is also an environment variable: --base-id is AETHER_BASE_ID. A flag
wins; an empty variable counts as not set; AETHER_ENVOY_ARG has one argument a
line. What follows "--" is given to Envoy and has to start with a dash.`

func (a app) supervisorCommand() *cobra.Command {
	var o supervisorOptions
	c := &cobra.Command{
		Use:     "proxy-supervisor [flags] [-- -envoy-flag ...]",
		Short:   "Run Envoy and hand over to a new one at every change",
		Long:    supervisorLong,
		Example: "  agent proxy-supervisor --config /etc/envoy/envoy.yaml -- -l info --service-node edge-1",
		Args:    envoyArguments,
	}
	o.bind(c.Flags())
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		return fromEnvironment(c.Flags(), a.lookupEnv, nil)
	}
	c.RunE = func(c *cobra.Command, args []string) error { return a.runSupervisor(c, &o, args) }
	return c
}

// envoyArguments takes what follows "--" and nothing else. The first word has to
// start with a dash, because a whole command line is to be accepted there one
// day, and a program's name must not be taken for an argument until then.
func envoyArguments(c *cobra.Command, args []string) error {
	dash := c.ArgsLenAtDash()
	if len(args) == 0 {
		return nil
	}
	if dash != 0 {
		return usageError(`unexpected argument %q; Envoy's own arguments come after "--"`, args[0])
	}
	if !strings.HasPrefix(args[0], "-") {
		return usageError(`what follows "--" are Envoy's own arguments and has to start with a dash, but there is %q; `+
			`the binary is named with --envoy-path`, args[0])
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
	cfg := o.cfg
	cfg.ExtraArgs = append(cfg.ExtraArgs, args...)
	cfg.NoRelay, cfg.NoSegmentRepair = !o.relay, !o.segmentRepair
	cfg.Version = buildVersion().Version
	a.places.fallBack(&cfg, c.Flags())
	if err := absolute(&cfg); err != nil {
		return err
	}
	if err := Check(cfg); err != nil {
		return err
	}
	if err := hotrestart.CheckEndpoint(o.otlpEndpoint); err != nil {
		return usageError("--%s: %w", flagOTLP, err)
	}
	if err := a.places.own(cfg); err != nil {
		return err
	}
	atOnce, _ := newLogger(a.stderr, o.logFormat, "info", a.terminal(a.stderr))
	out := newSink(a.stderr, atOnce)
	defer out.close()
	log, level := newLogger(out, o.logFormat, o.logLevel, a.terminal(a.stderr))
	cfg.LogLevel = level
	if err := raiseFileLimit(); err != nil {
		log.Warn("the limit of open files stays as it is", "error", err)
	}
	tel := hotrestart.TelemetryConfig{OTLPEndpoint: o.otlpEndpoint, ServiceVersion: cfg.Version, BaseID: cfg.BaseID, Log: log}
	err := a.supervise(c.Context(), cfg, tel, log)
	if err == nil {
		return nil
	}
	log.Error("the supervisor ends", "error", err, "exit_code", hotrestart.ExitCode(err))
	return &reported{fmt.Errorf("proxy-supervisor: %w", err)}
}
