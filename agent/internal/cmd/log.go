package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
)

func (a app) logCommand(t *target) *cobra.Command {
	levels := []string{"debug", "info", "warn", "error"}
	return &cobra.Command{
		Use:       "log [debug|info|warn|error]",
		Short:     "Show the supervisor's log level, or change it while it runs",
		ValidArgs: levels,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("unexpected argument %q", args[1])
			}
			var word string
			if len(args) == 1 && choice(&word, levels...).Set(args[0]) != nil {
				return usageError("%q is no log level: there are debug, info, warn and error", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			var wish control.LogLevel
			if len(args) == 1 {
				wish.Level = args[0]
			}
			return t.dial(c, func(c *cobra.Command, client *control.Client) error {
				now, err := client.SetLog(c.Context(), wish)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.stdout, now.Level)
				return err
			})
		},
	}
}
