package cmd

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
)

func (a app) historyCommand(t *target) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "history",
		Short: "Show the last tries at a handoff, how they ended and what took how long",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return t.dial(c, func(c *cobra.Command, client *control.Client) error {
				h, err := client.History(c.Context())
				if err != nil {
					return err
				}
				if output == "json" {
					return writeIndented(a.stdout, h)
				}
				return writeHistory(a.stdout, h, time.Now())
			})
		},
	}
	c.Flags().VarP(choice(&output, "table", "json"), "output", "o", "`format`: table or json")
	return c
}

// writeHistory shows h to people, as of now.
func writeHistory(w io.Writer, h control.History, now time.Time) error {
	if len(h.Handoffs) == 0 {
		_, err := fmt.Fprintln(w, "no handoff has ended yet")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "AGO\tEPOCHS\tTRIGGERS\tOUTCOME\tPREPARE\tLIVE\tVERIFY\tTOTAL\tWHY")
	for _, try := range h.Handoffs {
		epochs := fmt.Sprintf("%d to %d", try.From, try.To)
		if try.From == control.None {
			epochs = fmt.Sprintf("start %d", try.To)
		}
		m := try.Milliseconds
		fmt.Fprintln(t, strings.Join([]string{
			age(now.Sub(try.At)), epochs, strings.Join(try.Triggers, ","), try.Outcome,
			took(m.Prepare), took(m.Live), took(m.Verify), took(try.DurationMS), why(try),
		}, "\t"))
	}
	return t.Flush()
}

// took is "-" for a step that a try never came to.
func took(milliseconds float64) string {
	if milliseconds == 0 {
		return "-"
	}
	return ms(milliseconds)
}

// why is one line; all of it is in the JSON.
func why(try control.TryStatus) string {
	text := strings.Join(try.Forced, "; ")
	switch {
	case try.Step != "":
		text, _, _ = strings.Cut(try.Step+": "+try.Error, "\n")
	case text != "":
		text = "forced, without: " + text
	default:
		return "-"
	}
	const most = 100
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "…"
	}
	return text
}
