package cmd

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
)

const watchEvery = time.Second

func (a app) statusCommand(t *target) *cobra.Command {
	var output string
	var watch bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Show the epochs, what is pending, and what failed last",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return t.dial(c, func(c *cobra.Command, client *control.Client) error {
				return a.status(c.Context(), client, output, watch)
			})
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.VarP(choice(&output, "table", "json"), "output", "o", "`format`: table or json")
	f.BoolVar(&watch, "watch", false, "go on until ctrl-C: redraw each second on a terminal, else print each change")
	return c
}

func (a app) status(ctx context.Context, client *control.Client, output string, watch bool) error {
	write := writeTable
	if output == "json" {
		write = writeJSON
	}
	if !watch {
		st, err := client.Status(ctx)
		if err != nil {
			return err
		}
		return write(a.stdout, st, time.Now())
	}
	w := watcher{fetch: client.Status, write: write, out: a.stdout}
	if output == "json" || !a.terminal(a.stdout) {
		return w.changes(ctx)
	}
	return w.redraw(ctx)
}

func writeJSON(w io.Writer, st control.Status, _ time.Time) error { return writeIndented(w, st) }
