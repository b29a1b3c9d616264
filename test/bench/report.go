package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"
)

// The goals, for small bootstraps with an unchanged binary.
const (
	goalRatio  = 1.1
	goalCPU    = 4.0      // ms a handoff
	goalIdle   = 0.3      // ms a second, supervisor and what it adds to Envoy
	goalMemory = 16 << 10 // kB
)

// summary of one quantity of one way, in milliseconds.
type summary struct {
	Median float64   `json:"median"`
	P90    float64   `json:"p90"`
	Values []float64 `json:"values"`
}

func summarize(samples []sample, of func(sample) time.Duration) summary {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = milliseconds(of(s))
	}
	return summary{median(values), quantile(values, 0.9), values}
}

// times are all quantities of one way.
type times struct {
	Started    summary `json:"started_ms"`
	Live       summary `json:"live_ms"`
	Committed  summary `json:"committed_ms"`
	ParentGone summary `json:"parent_gone_ms"`
	Supervisor summary `json:"supervisor_cpu_ms"`
	Envoy      summary `json:"newcomer_cpu_ms"`
}

// verdict is one goal and what was found.
type verdict struct {
	What  string    `json:"what"`
	Unit  string    `json:"unit"`
	Goal  float64   `json:"goal"`
	Found float64   `json:"found"`
	Ratio *interval `json:"ratio,omitempty"` // when Found is one
	Met   bool      `json:"met"`
}

type report struct {
	Machine  machine       `json:"machine"`
	Rounds   int           `json:"rounds"`
	Poll     string        `json:"poll"`
	Ways     map[way]times `json:"ways"`
	Idle     idleness      `json:"idle"`
	Verdicts []verdict     `json:"goals"`
}

func newReport(m machine, o options, samples map[way][]sample, idle idleness) report {
	r := report{Machine: m, Rounds: o.rounds, Poll: o.poll.String(), Ways: map[way]times{}, Idle: idle}
	for w, s := range samples {
		r.Ways[w] = times{
			Started:    summarize(s, func(s sample) time.Duration { return s.Started }),
			Live:       summarize(s, func(s sample) time.Duration { return s.Live }),
			Committed:  summarize(s, func(s sample) time.Duration { return s.Committed }),
			ParentGone: summarize(s, func(s sample) time.Duration { return s.ParentGone }),
			Supervisor: summarize(s, func(s sample) time.Duration { return s.Supervisor }),
			Envoy:      summarize(s, func(s sample) time.Duration { return s.Envoy }),
		}
	}
	r.judge()
	return r
}

// against says what each way is compared with.
var against = []struct{ ours, hand way }{
	{hup, byHand}, {hupValidated, byHandValidated}, {rename, byHand}, {renameValidated, byHandValidated},
}

func (r *report) judge() {
	for _, pair := range against {
		ratio := ratioOf(r.Ways[pair.ours].Live.Values, r.Ways[pair.hand].Live.Values)
		r.Verdicts = append(r.Verdicts, verdict{
			What: fmt.Sprintf("%s → LIVE / %s", pair.ours, pair.hand), Unit: "×",
			Goal: goalRatio, Found: ratio.Value, Ratio: &ratio, Met: ratio.Value <= goalRatio,
		})
	}
	for _, pair := range against {
		r.atMost("supervisor's CPU, "+string(pair.ours), "ms", goalCPU, r.Ways[pair.ours].Supervisor.Median)
	}
	r.atMost("idle CPU, supervisor and its Envoy's extra", "ms/s", goalIdle, r.Idle.all())
	r.atMost("supervisor's RSS after all handoffs", "kB", goalMemory, float64(r.Idle.After.RSS))
}

func (r *report) atMost(what, unit string, goal, found float64) {
	r.Verdicts = append(r.Verdicts, verdict{What: what, Unit: unit, Goal: goal, Found: found, Met: found <= goal})
}

func (r *report) print(to io.Writer) {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nmilliseconds, median / p90 of %d rounds\tstarted\tLIVE\tcommitted\tparent gone\tsupervisor CPU\tnewcomer CPU\n", r.Rounds)
	for _, w := range []way{byHand, hup, rename, byHandValidated, hupValidated, renameValidated} {
		x := r.Ways[w]
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\t%v\t%v\t%v\n", w, x.Started, x.Live, x.Committed, x.ParentGone, x.Supervisor, x.Envoy)
	}
	t.Flush()
	i := r.Idle
	fmt.Fprintln(t, "\nidle\tsupervisor, ms/s\twake-ups/s\tEnvoy, ms/s\tsupervisor's memory, kB")
	for _, x := range []struct {
		name string
		side
	}{
		{"by hand", i.ByHand}, {"supervised", i.Supervised}, {"with telemetry", i.Pushing},
		{"by hand, with a parent", i.ByHandWithParent}, {"supervised, with a parent", i.WithParent},
	} {
		fmt.Fprintf(t, "%s\t%.3f\t%.1f\t%.3f\t%v\n", x.name, x.Supervisor, x.Wakeups, x.Envoy, x.Memory)
	}
	t.Flush()
	ours, envoys := i.flush()
	fmt.Fprintf(to, "a stats flush through the relay: %.2f ms of the supervisor, %+.2f ms of the Envoy that serves\n", ours, envoys)
	fmt.Fprintf(to, "supervisor's memory, kB: at start %v, after all handoffs %v\n\n", i.AtStart, i.After)
	fmt.Fprintln(t, "what\tgoal\tmeasured\t95 %\t")
	for _, v := range r.Verdicts {
		fmt.Fprintf(t, "%s\t%g %s\t%.2f\t%s\t%s\n", v.What, v.Goal, v.Unit, v.Found, v.Ratio, map[bool]string{true: "met", false: "SHORT"}[v.Met])
	}
	t.Flush()
	fmt.Fprintf(to, "\n%s\nload average at the end %.2f %.2f %.2f\n", r.Machine, r.Machine.After[0], r.Machine.After[1], r.Machine.After[2])
}

func (s summary) String() string {
	if s.Median == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f / %.1f", s.Median, s.P90)
}

func (i *interval) String() string {
	if i == nil {
		return ""
	}
	return fmt.Sprintf("%.2f–%.2f", i.Low, i.High)
}

func (m memory) String() string {
	return fmt.Sprintf("%d (anonymous %d, file %d, peak %d)", m.RSS, m.Anon, m.File, m.Peak)
}

func (r *report) save(path string) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}
