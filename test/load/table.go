package load

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// tableErrors is how many errors a person wants to read.
const tableErrors = 20

// Table is the report for people: a line for each kind, then what failed and
// the first errors.
func (r Report) Table() string {
	var out strings.Builder
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KIND\tTLS\tSTARTED\tOK\tFAILED\tTOLD\tIDLE\tRETRIED\tOVERRUN\tP50\tP90\tP99\tMAX\tGAP\tEPOCHS")
	for _, k := range r.Kinds {
		k.row(t)
	}
	r.totals(t)
	_ = t.Flush() // a strings.Builder takes everything
	for _, k := range r.Kinds {
		out.WriteString(k.headings())
	}
	for i, e := range r.Errors {
		if i == tableErrors {
			fmt.Fprintf(&out, "%10s  (%d more of the first errors are in the JSON report)\n", "", len(r.Errors)-i)
			break
		}
		fmt.Fprintf(&out, "%10s  %s  %s: %s%s\n", "+"+short(e.Offset), name(e.Kind, e.TLS), e.Heading, e.Message, in(e.Epoch))
	}
	return out.String()
}

func (k KindReport) row(t *tabwriter.Writer) {
	tls := "-"
	if k.TLS {
		tls = "yes"
	}
	fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n",
		k.Kind, tls, k.Started, k.OK, k.Failed, k.ToldToClose, k.IdleClosed, k.Retried, k.Overrun,
		short(k.P50), short(k.P90), short(k.P99), short(k.Max), short(k.LongestGap), epochs(k.Epochs))
}

func (r Report) totals(t *tabwriter.Writer) {
	told := r.sum(func(k *KindReport) int { return k.ToldToClose })
	idle := r.sum(func(k *KindReport) int { return k.IdleClosed })
	fmt.Fprintf(t, "all\t\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\t\t\t\t\t%s\n",
		r.Started(), r.OK(), r.Failures(), told, idle, r.Retried(), r.Overruns(), epochs(r.Epochs()))
}

// headings is "new: 3 failed: 2 refused, 1 cut", or nothing.
func (k KindReport) headings() string {
	if k.Failed == 0 && k.Abandoned == 0 {
		return ""
	}
	var parts []string
	for _, h := range []string{refused, reset, cut, timedOut, wrong, other, strict} {
		if n := *k.counter(h); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, h))
		}
	}
	line := fmt.Sprintf("%s: %d failed", name(k.Kind, k.TLS), k.Failed)
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if k.Abandoned > 0 {
		line += fmt.Sprintf(", %d abandoned by us", k.Abandoned)
	}
	return line + "\n"
}

func name(kind string, tls bool) string {
	if tls {
		return kind + "+tls"
	}
	return kind
}

func in(epoch string) string {
	if epoch == "" {
		return ""
	}
	return " (epoch " + epoch + ")"
}

func epochs(counts map[string]int) string {
	var parts []string
	for epoch, n := range counts {
		parts = append(parts, fmt.Sprintf("%s:%d", epoch, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// short keeps two or three digits: nobody reads more in a table.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= 10*time.Millisecond:
		return d.Round(time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Microsecond).String()
}
