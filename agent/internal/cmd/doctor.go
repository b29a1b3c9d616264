package cmd

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/hotrestart"
)

func (a app) doctorCommand(t *target) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Look for what may go wrong here one day, and say what to do",
		Long: `Has the supervisor look at its place: who else uses the base-id, shared memory,
limits, mounts, timers, addresses. It changes nothing. The exit code is 1 when
there is something to do. The supervisor looks by itself when its first epoch
serves, and logs what it would change.`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return t.dial(c, func(c *cobra.Command, client *control.Client) error {
				d, err := client.Doctor(c.Context())
				if err != nil {
					return err
				}
				return a.printDiagnosis(d, output)
			})
		},
	}
	c.Flags().VarP(choice(&output, "text", "json"), "output", "o", "`format`: text or json")
	return c
}

func (a app) printDiagnosis(d control.Diagnosis, output string) error {
	write := writeDiagnosis
	if output == "json" {
		write = func(w io.Writer, d control.Diagnosis) error { return writeIndented(w, d) }
	}
	if err := write(a.stdout, d); err != nil {
		return err
	}
	for _, f := range d.Findings {
		if !f.OK {
			return &reported{hotrestart.Exitf(hotrestart.ExitUnexpected, "there is something to do")}
		}
	}
	return nil
}

func writeDiagnosis(w io.Writer, d control.Diagnosis) error {
	for _, f := range d.Findings {
		mark := "ok    "
		if !f.OK {
			mark = "to do "
		}
		if _, err := fmt.Fprintf(w, "%s %s: %s\n", mark, f.Check, f.Found); err != nil {
			return err
		}
		if f.Do != "" {
			if _, err := fmt.Fprintf(w, "       %s\n", f.Do); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeIndented(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", data)
	return err
}
