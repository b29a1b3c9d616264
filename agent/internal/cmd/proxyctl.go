package cmd

import (
	"errors"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/hotrestart"
)

// onlyFlags are flags that say what to do this time. They have no variables: a
// forgotten AETHER_FORCE must not make every reload a forced one.
var onlyFlags = []string{"output", "watch", "wait", "timeout", "force", "path", "check", "help", flagOwner}

func hasVariable(f *pflag.Flag) bool { return !slices.Contains(onlyFlags, f.Name) }

// target is how proxyctl's commands find their supervisor.
type target struct {
	socket string
	base   baseID
}

func (a app) proxyctlCommand() *cobra.Command {
	var t target
	c := &cobra.Command{
		Use:   "proxyctl",
		Short: "Look at a running supervisor, or make it reload",
		Args:  knownCommand,
		RunE:  needsCommand,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if err := fromEnvironment(c.Flags(), a.lookupEnv, []string{flagControlSocket, flagBaseID}); err != nil {
				return err
			}
			a.places.find(&t, c.Flags())
			return nil
		},
	}
	f := c.PersistentFlags()
	f.StringVar(&t.socket, flagControlSocket, defaultControlSocket, "`path` of the supervisor's control socket")
	f.Var(&t.base, flagBaseID, "the supervisor's base-id (`number`); finds the default socket of an ordinary user")
	c.AddCommand(a.statusCommand(&t), a.reloadCommand(&t), a.upgradeCommand(&t), a.drainCommand(&t), a.undrainCommand(&t),
		a.historyCommand(&t), a.doctorCommand(&t), a.logCommand(&t))
	return c
}

// find is where a supervisor of the same user, with the same flags, has its
// socket.
func (p places) find(t *target, f *pflag.FlagSet) {
	cfg := hotrestart.Config{BaseID: uint32(t.base), ControlSocket: t.socket}
	p.fallBack(&cfg, f)
	t.socket = cfg.ControlSocket
}

// dial runs do with a client, until ctrl-C at the latest.
func (t *target) dial(c *cobra.Command, do func(*cobra.Command, *control.Client) error) error {
	if err := control.CheckPath(t.socket); err != nil {
		return usageError("%w", err)
	}
	ctx, stop := signal.NotifyContext(c.Context(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	client := control.Dial(t.socket)
	defer client.Close()
	c.SetContext(ctx)
	return exitOf(do(c, client))
}

// exitOf gives errors of the client their exit code.
func exitOf(err error) error {
	if errors.Is(err, control.ErrNoSupervisor) {
		return hotrestart.Exitf(ExitNoSupervisor, "%w", err)
	}
	return err
}
