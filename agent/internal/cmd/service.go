package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
)

func (a app) drainCommand(t *target) *cobra.Command {
	return a.serviceCommand(t, true, &cobra.Command{
		Use:   "drain",
		Short: "Take this Envoy out of the traffic: not ready, and clients are asked to go elsewhere",
		Long: `Withdraws the ready marker and makes Envoy fail its health checks: each answer
asks its client to close, and load balancers choose others. Envoy goes on to
serve whoever comes, and stays drained across hot restarts, until undrain or the
supervisor's end. Connections that ask for nothing stay.`,
	})
}

func (a app) undrainCommand(t *target) *cobra.Command {
	return a.serviceCommand(t, false, &cobra.Command{
		Use:   "undrain",
		Short: "Undo drain: ready again, and health checks pass",
	})
}

func (a app) serviceCommand(t *target, out bool, c *cobra.Command) *cobra.Command {
	c.Args = noArguments
	c.RunE = func(c *cobra.Command, _ []string) error {
		return t.dial(c, func(c *cobra.Command, client *control.Client) error {
			r, err := client.Drain(c.Context(), out)
			if err != nil {
				return err
			}
			return a.printService(r)
		})
	}
	return c
}

func (a app) printService(r control.DrainResult) error {
	word := "undrained: epoch %d is ready"
	if r.Drained {
		word = "drained: epoch %d is not ready, and asks its clients to go elsewhere"
	}
	switch {
	case r.Epoch == control.None:
		_, err := fmt.Fprintf(a.stdout, "no epoch serves yet; the first one will be told (drained: %v)\n", r.Drained)
		return err
	case !r.Told:
		return errors.New("the ready marker is as asked, but the epoch could not be told about its health checks; the supervisor's log says why")
	}
	_, err := fmt.Fprintf(a.stdout, word+"\n", r.Epoch)
	return err
}
