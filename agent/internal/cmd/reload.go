package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
)

// acceptTime is how long a supervisor may take to say that a reload is on its way.
const acceptTime = 10 * time.Second

func (a app) reloadCommand(t *target) *cobra.Command {
	var req control.ReloadRequest
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "reload",
		Short: "Make the supervisor hand over to a new epoch",
		Args:  noArguments,
		PreRunE: func(c *cobra.Command, _ []string) error {
			switch {
			case c.Flags().Changed("timeout") && !req.Wait:
				return usageError("--timeout goes with --wait only")
			case timeout <= 0:
				return usageError("--timeout %v: it must be more than nothing", timeout)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return t.dial(c, func(c *cobra.Command, client *control.Client) error {
				return a.reload(c.Context(), client, req, timeout)
			})
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&req.Wait, "wait", false, "wait until the new epoch serves or has failed, and print its log when it failed")
	f.DurationVar(&timeout, "timeout", 10*time.Minute, "wait for this `time` at most; the reload goes on")
	f.BoolVar(&req.Force, "force", false,
		"commit a LIVE epoch that lacks something, and end the oldest of three generations (cuts its streams)")
	return c
}

func (a app) reload(ctx context.Context, client *control.Client, req control.ReloadRequest, timeout time.Duration) error {
	if !req.Wait {
		timeout = acceptTime
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	res, err := client.Reload(limited, req)
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted; the reload goes on, see: agent proxyctl status")
	case limited.Err() != nil:
		return fmt.Errorf("not done after %v; the reload goes on, see: agent proxyctl status", timeout)
	case err != nil:
		return err
	}
	if err := outcome(res); err != nil {
		writeLog(a.stderr, res)
		return err
	}
	return a.printSuccess(ctx, client, res)
}

// outcome is nil when a reload did what it was asked for.
func outcome(res control.ReloadResult) error {
	took := res.Duration.Round(time.Millisecond)
	switch res.Outcome {
	case control.Committed, control.Unchanged, control.Accepted:
		return nil
	case control.Refused:
		return fmt.Errorf("refused: %s", res.Error)
	}
	return fmt.Errorf("%s after %v: %s", res.Outcome, took, res.Error)
}

func writeLog(w io.Writer, res control.ReloadResult) {
	if len(res.Log) == 0 {
		return
	}
	fmt.Fprintf(w, "log of epoch %d:\n", res.Epoch)
	for _, line := range res.Log {
		fmt.Fprintf(w, "| %s\n", line)
	}
}

func (a app) printSuccess(ctx context.Context, client *control.Client, res control.ReloadResult) error {
	var err error
	switch res.Outcome {
	case control.Unchanged:
		_, err = fmt.Fprintf(a.stdout, "unchanged: epoch %d has this input already\n", res.Epoch)
	case control.Accepted:
		_, err = fmt.Fprintln(a.stdout, "accepted; see: agent proxyctl status")
	default:
		_, err = fmt.Fprintf(a.stdout, "committed: epoch %d serves after %v%s\n",
			res.Epoch, res.Duration.Round(time.Millisecond), timings(ctx, client, res.Epoch))
	}
	return err
}

// timings are the steps of the handoff to epoch, unless another followed already.
func timings(ctx context.Context, client *control.Client, epoch int) string {
	st, err := client.Status(ctx)
	if err != nil || st.LastHandoff == nil || st.LastHandoff.To != epoch {
		return ""
	}
	return " (" + steps(st.LastHandoff.Milliseconds) + ")"
}
