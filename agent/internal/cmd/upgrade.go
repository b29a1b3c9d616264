package cmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/hotrestart"
)

func (a app) upgradeCommand(t *target) *cobra.Command {
	var req control.UpgradeRequest
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "upgrade",
		Short: "Replace the supervisor's own program; Envoy doesn't notice",
		Long: `Makes the supervisor execute another agent in its place: the process stays, and
with it its Envoys, their sockets and locks. The new program is asked first whether
it can go on from where the old one is, and is refused with its reason when it
can't. It waits for a moment without a handoff, and returns when the new program
runs. Flags and environment stay those that the supervisor was started with.`,
		Args: noArguments,
		PreRunE: func(*cobra.Command, []string) error {
			if timeout <= 0 {
				return usageError("--timeout %v: it must be more than nothing", timeout)
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			return t.dial(c, func(c *cobra.Command, client *control.Client) error {
				ctx, cancel := context.WithTimeout(c.Context(), timeout)
				defer cancel()
				return a.upgrade(ctx, client, req)
			})
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&req.Path, "path", "", "the new program (`path`); empty: where the supervisor was started from, which has been replaced")
	f.BoolVar(&req.Check, "check", false, "only ask the new program whether it can take over")
	f.DurationVar(&timeout, "timeout", time.Minute, "wait for this `time` at most, for a moment without a handoff and for the new program")
	return c
}

func (a app) upgrade(ctx context.Context, client *control.Client, req control.UpgradeRequest) error {
	res, err := client.Upgrade(ctx, req)
	if err != nil {
		return err
	}
	switch res.Outcome {
	case control.Refused:
		return fmt.Errorf("refused: %s", res.Error)
	case control.Unchanged:
		_, err := fmt.Fprintf(a.stdout, "version %s can take over\n", res.To)
		return err
	}
	st, err := settled(ctx, client)
	switch {
	case err != nil:
		return err
	case st.LastUpgrade.Error != "":
		return fmt.Errorf("failed, and version %s goes on: %s", st.Version, st.LastUpgrade.Error)
	}
	_, err = fmt.Fprintf(a.stdout, "version %s runs, in place of %s; epoch %d serves\n", st.Version, st.LastUpgrade.From, st.Serving)
	return err
}

// settled asks until the supervisor knows how it went: what it knew of an earlier
// upgrade it has forgotten when this one was asked for.
func settled(ctx context.Context, client *control.Client) (control.Status, error) {
	for {
		st, err := client.Status(ctx)
		if err == nil && st.LastUpgrade != nil {
			return st, nil
		}
		select {
		case <-ctx.Done():
			return st, cmp.Or(err, fmt.Errorf("not done in time; see: agent proxyctl status: %w", ctx.Err()))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkState answers a supervisor that asks whether this program could go on from
// its state; false: nobody does.
func (a app) checkState(cfg hotrestart.Config) (asked bool, _ error) {
	text, asked := a.lookupEnv(hotrestart.CheckVariable)
	if !asked {
		return false, nil
	}
	answer := hotrestart.Takeover{Takes: true, Version: cfg.Version}
	fd, err := strconv.ParseUint(text, 10, 31)
	if err == nil {
		err = hotrestart.CheckEstate(cfg, os.NewFile(uintptr(fd), "handed-over state"))
	}
	if err != nil {
		answer.Takes, answer.Error = false, err.Error()
	}
	return true, json.NewEncoder(a.stdout).Encode(answer)
}
