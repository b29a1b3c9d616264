// Package cmd is the agent's command line: flags and environment become a
// hotrestart.Config, errors become exit codes. It decides nothing else.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/hotrestart"
)

// app is everything of the world that the commands touch.
type app struct {
	stdout, stderr io.Writer
	terminal       func(io.Writer) bool
	lookupEnv      func(string) (string, bool)
	executable     func() (string, error)
	places         places
	supervise      func(context.Context, hotrestart.Config, hotrestart.TelemetryConfig, *slog.Logger) error
}

// Main runs the agent with args (without the program's name) and returns its
// exit code, one of the table in exitcodes.go.
func Main(args []string) int {
	return app{
		stdout:     os.Stdout,
		stderr:     os.Stderr,
		terminal:   isTerminal,
		lookupEnv:  os.LookupEnv,
		executable: os.Executable,
		places: places{
			euid: os.Geteuid(), runtimeDir: coordination.RuntimeDir, usable: usable, ensure: coordination.EnsureStateDir, write: writePrivate,
		},
		supervise: supervise,
	}.main(args)
}

func (a app) main(args []string) int {
	root := a.root()
	root.SetArgs(args)
	ran, err := root.ExecuteC()
	if err != nil {
		if e := hotrestart.GiveBack(err.Error()); e != nil {
			fmt.Fprintf(a.stderr, "%s: the old program can't be executed again: %v\n", ran.CommandPath(), e)
		}
	}
	var silent *reported
	if err != nil && !errors.As(err, &silent) {
		fmt.Fprintf(a.stderr, "%s: %v\n", ran.CommandPath(), err)
		if hotrestart.ExitCode(err) == hotrestart.ExitUsage {
			fmt.Fprintf(a.stderr, "Run '%s --help' for its flags.\n", ran.CommandPath())
		}
	}
	return hotrestart.ExitCode(err)
}

// reported is an error whose sentence is out already, in the command's own form.
type reported struct{ error }

func (r *reported) Unwrap() error { return r.error }

func usageError(format string, args ...any) error {
	return hotrestart.Exitf(hotrestart.ExitUsage, format, args...)
}

func (a app) root() *cobra.Command {
	root := &cobra.Command{
		Use:               "agent",
		Short:             "Keeps an Envoy serving while its bootstrap or its binary changes",
		Args:              knownCommand,
		RunE:              needsCommand,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError("%w", err) })
	root.AddCommand(a.supervisorCommand(), a.directoriesCommand(), a.proxyctlCommand(), a.versionCommand(), a.completionCommand())
	completeChoices(root)
	return root
}

// knownCommand is for commands that only have commands below them.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError("unknown command %q; there are %s", args[0], commandNames(c))
}

func needsCommand(c *cobra.Command, _ []string) error {
	return usageError("which command? There are %s", commandNames(c))
}

func commandNames(c *cobra.Command) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.Name() != "help" {
			names = append(names, sub.Name())
		}
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("unexpected argument %q", args[0])
	}
	return nil
}
