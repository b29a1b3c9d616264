package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"aether.internal/test/demo/report"
	"aether.internal/test/load"
)

// summary is the end of the demo, for people.
func summary(r report.Run) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%s\n\n", r.Verdict())
	t := tabwriter.NewWriter(&out, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "operations\t%s\n", operations(r.Load))
	fmt.Fprintf(t, "hot restarts\t%d: %s\n", len(r.Restarts()), handoffTimes(r))
	fmt.Fprintf(t, "not committed\t%s\n", notCommitted(r))
	fmt.Fprintf(t, "epochs\t%d, at most %d alive at once\n", len(r.Handoffs), r.AliveAtOnce())
	low, high := r.P99()
	fmt.Fprintf(t, "latency\tp99 from %s to %s by kind, at worst %s\n", report.Short(low), report.Short(high), report.Short(r.Worst()))
	_ = t.Flush() // a strings.Builder takes everything
	out.WriteString("\n" + table(r))
	const some = 5
	for _, e := range r.Load.Errors[:min(some, len(r.Load.Errors))] {
		fmt.Fprintf(&out, "failed %s\n", r.Failure(e))
	}
	return out.String()
}

func operations(r load.Report) string {
	text := fmt.Sprintf("%s: %s failed", report.Count(r.Started()), report.Count(r.Failures()))
	if n := r.Retried(); n > 0 {
		text += fmt.Sprintf(", %s sent again as HTTP permits", report.Count(n))
	}
	if n := r.Overruns(); n > 0 {
		text += fmt.Sprintf("; this machine was too slow to start %s more", report.Count(n))
	}
	return text
}

func handoffTimes(r report.Run) string {
	if len(r.Restarts()) == 0 {
		return "none"
	}
	low, median, high := r.HandoffTimes()
	return fmt.Sprintf("%s at best, %s median, %s at worst, from the change to the new epoch serving",
		report.Short(low), report.Short(median), report.Short(high))
}

func notCommitted(r report.Run) string {
	if len(r.Refusals) == 0 {
		return "0"
	}
	var all []string
	for _, x := range r.Refusals {
		all = append(all, x.What())
	}
	return fmt.Sprintf("%d: %s", len(all), strings.Join(all, ", "))
}

// table has a line for each handoff.
func table(r report.Run) string {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "epoch\tbootstrap\tEnvoy\tprepare\tLIVE\tverified\tsum\tserved\tdrained\t")
	for _, h := range r.Handoffs {
		l := r.Lane(h.To)
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", h.To, l.Tag, l.Version,
			report.Short(h.Prepare), report.Short(h.Live), report.Short(h.Verify), report.Short(h.Total()),
			report.Short(l.Length("serving")), report.Short(l.Length("draining")))
	}
	_ = t.Flush()
	return out.String()
}
