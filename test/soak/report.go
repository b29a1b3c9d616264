package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

// report is all that a run found.
type report struct {
	At         time.Time      `json:"at"`
	Handoffs   int            `json:"handoffs"`
	Wanted     int            `json:"wanted"`
	Seconds    float64        `json:"seconds"` // first handoff to last, waits for samples included
	Rate       float64        `json:"rate"`    // operations per second, planned
	Young      int            `json:"goroutines_after_1"`
	Old        int            `json:"goroutines_at_the_end"`
	Load       load.Report    `json:"load"`
	Complaints map[string]int `json:"complaints"` // the supervisor's warnings and errors, by message
	Verdicts   []verdict      `json:"verdicts"`
	Samples    []sample       `json:"samples"`

	judgeError error
	log        string // the supervisor's
}

func newReport(o options) *report {
	return &report{At: time.Now().UTC(), Wanted: o.handoffs, Rate: o.rate}
}

// moreGoroutines are noise: a connection of the control socket that is about to
// close has two.
const moreGoroutines = 6

// failure is nil when nothing grew and nothing failed.
func (r *report) failure() error {
	errs := []error{r.judgeError}
	for _, v := range r.Verdicts {
		if v.Failed {
			errs = append(errs, fmt.Errorf("%s grew from %.0f to %.0f (%.0f allowed, %.0f at most seen)", v.Name, v.Before, v.After, v.Allowed, v.Most))
		}
	}
	if r.Handoffs < r.Wanted {
		errs = append(errs, fmt.Errorf("only %d of %d handoffs were made", r.Handoffs, r.Wanted))
	}
	if r.Old > r.Young+moreGoroutines {
		errs = append(errs, fmt.Errorf("%d goroutines at the end, and %d after the first handoff", r.Old, r.Young))
	}
	if r.Load.Failures() > 0 || r.Load.OK() == 0 {
		errs = append(errs, fmt.Errorf("the load was harmed: %d of %d operations failed", r.Load.Failures(), r.Load.Started()))
	}
	return errors.Join(errs...)
}

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "\n%d handoffs in %.0f s (%.2f a second)\n", r.Handoffs, r.Seconds, float64(r.Handoffs)/max(r.Seconds, 0.001))
	fmt.Fprintf(w, "load: %d operations, %d failures, %d permitted retries, %d overruns\n",
		r.Load.Started(), r.Load.Failures(), r.Load.Retried(), r.Load.Overruns())
	fmt.Fprintf(w, "goroutines: %d after the first handoff, %d at the end\n", r.Young, r.Old)
	for _, message := range slices.Sorted(maps.Keys(r.Complaints)) {
		fmt.Fprintf(w, "the supervisor said %d times: %s\n", r.Complaints[message], message)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\n2nd quarter\tlast quarter\tmost\tallowed more\tper 1,000 handoffs\t\t ")
	for _, v := range r.Verdicts {
		outcome := "ok"
		if v.Failed {
			outcome = "FAIL"
		}
		fmt.Fprintf(t, "%.0f\t%.0f\t%.0f\t%.0f\t%+.1f\t%s\t %s\n", v.Before, v.After, v.Most, v.Allowed, v.PerThousand, outcome, v.Name)
	}
	t.Flush()
	for _, e := range r.Load.Errors {
		fmt.Fprintf(w, "%s (tls %t) at %v, %s: %s\n", e.Kind, e.TLS, e.Offset, e.Heading, e.Message)
	}
}

// write writes the report, and the supervisor's log beside it.
func (r *report) write(path string) error {
	data, err := json.MarshalIndent(r, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o755)
	}
	if err == nil {
		err = os.WriteFile(path, append(data, '\n'), 0o644)
	}
	if err == nil {
		err = os.WriteFile(strings.TrimSuffix(path, filepath.Ext(path))+".log", []byte(r.log), 0o644)
	}
	return err
}

// complaints counts the supervisor's own warnings and errors.
func complaints(lines []node.Line) map[string]int {
	found := map[string]int{}
	for _, l := range lines {
		if l.Source == "" && (l.Level == "WARN" || l.Level == "ERROR") {
			found[l.Message]++
		}
	}
	return found
}

var goroutine = regexp.MustCompile(`^goroutine \d+ (gp=\S+ m=\S+ (mp=\S+ )?)?\[`)

func countGoroutines(lines []node.Line) int {
	n := 0
	for _, l := range lines {
		if goroutine.MatchString(l.Raw) {
			n++
		}
	}
	return n
}
