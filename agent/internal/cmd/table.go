package cmd

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// hashDigits are enough to tell two files apart.
const hashDigits = 8

// writeTable shows st to people, as of now.
func writeTable(w io.Writer, st control.Status, now time.Time) error {
	var b bytes.Buffer
	writeHead(&b, st)
	writeEpochs(&b, st.Epochs)
	writePending(&b, st.Pending, now)
	writeHandoff(&b, st.LastHandoff, now)
	writeFailure(&b, st.LastFailure, now)
	writeUpgrade(&b, st.LastUpgrade, now)
	_, err := w.Write(b.Bytes())
	return err
}

func writeHead(w io.Writer, st control.Status) {
	serving := "no epoch serves"
	if st.Serving != control.None {
		serving = fmt.Sprintf("epoch %d serves", st.Serving)
	}
	ready := "not ready"
	switch {
	case st.Ready:
		ready = "ready"
	case st.Drained:
		ready = "not ready (drained, as asked; undrain puts it back)"
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "state:\t%s, %s, %s\n", st.State, serving, ready)
	fmt.Fprintf(t, "supervisor:\tpid %d, version %s, base-id %d, %s mode\n", st.PID, st.Version, st.BaseID, st.Mode)
	admin := ""
	if st.AdminAddress != "" { // not known before an epoch serves
		admin = ", admin " + st.AdminAddress
	}
	fmt.Fprintf(t, "envoy:\t%s, %d workers%s\n", st.EnvoyPath, st.Concurrency, admin)
	fmt.Fprintf(t, "config:\t%s\n", st.ConfigPath)
	fmt.Fprintf(t, "safety:\trelay %s, segment repair %s, segment repairs so far: %d\n", onOff(st.Relay), onOff(st.SegmentRepair), st.SegmentRepairs)
	t.Flush()
}

// writeUpgrade tells of the last replacement of the supervisor's own program.
func writeUpgrade(w io.Writer, u *control.UpgradeStatus, now time.Time) {
	if u == nil {
		return
	}
	outcome := "done"
	if u.Error != "" {
		outcome = "failed: " + u.Error
	}
	fmt.Fprintf(w, "\nlast upgrade of the supervisor, %s ago: from %s to %s, %s\n", age(now.Sub(u.At)), u.From, u.To, outcome)
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

func writeEpochs(w io.Writer, epochs []control.EpochStatus) {
	if len(epochs) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EPOCH\tPID\tSTATE\tAGE\tTIME LEFT\tCONNECTIONS\tENVOY\tCONFIG\tBINARY")
	for _, e := range epochs {
		fmt.Fprintln(t, strings.Join([]string{
			strconv.Itoa(e.Epoch), strconv.Itoa(e.PID), e.State,
			age(seconds(e.AgeSeconds)), timeLeft(e.TimeLeftSeconds), count(e.Connections),
			or(e.EnvoyVersion, "-"), short(e.ConfigHash), short(e.BinaryHash),
		}, "\t"))
	}
	t.Flush()
}

func writePending(w io.Writer, p *control.PendingStatus, now time.Time) {
	if p == nil {
		return
	}
	force := ""
	if p.Force {
		force = ", forced"
	}
	fmt.Fprintf(w, "\npending:       a hot restart (%s%s), for %s\n", strings.Join(p.Triggers, ", "), force, age(now.Sub(p.Since)))
	if p.WaitsFor != "" {
		fmt.Fprintf(w, "               waits for %s\n", p.WaitsFor)
	}
}

func writeHandoff(w io.Writer, h *control.HandoffStatus, now time.Time) {
	if h == nil {
		return
	}
	which := fmt.Sprintf("epoch %d to %d", h.From, h.To)
	if h.From == control.None {
		which = fmt.Sprintf("first start, epoch %d", h.To)
	}
	fmt.Fprintf(w, "\nlast handoff:  %s, %s ago\n               %s\n", which, age(now.Sub(h.At)), steps(h.Milliseconds))
}

func writeFailure(w io.Writer, f *control.FailureStatus, now time.Time) {
	if f == nil {
		return
	}
	fmt.Fprintf(w, "\nlast failure:  epoch %d, step %q, %s ago\n               %s\n", f.Epoch, f.Step, age(now.Sub(f.At)), f.Error)
	for _, line := range f.Log {
		fmt.Fprintf(w, "               | %s\n", line)
	}
}

func steps(t control.StepTimes) string {
	return fmt.Sprintf("prepare %s + live %s + verify %s = %s",
		ms(t.Prepare), ms(t.Live), ms(t.Verify), ms(t.Total()))
}

func ms(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) + " ms" }

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// age is d for people: two units at most.
func age(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + "s"
	case d < time.Hour:
		return shortDuration(d.Truncate(time.Second).String())
	case d < day:
		return shortDuration(strings.TrimSuffix(d.Truncate(time.Minute).String(), "0s"))
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

func timeLeft(s float64) string {
	if s < 0 {
		return "-"
	}
	return age(seconds(s))
}

func count(n int) string {
	if n < 0 {
		return "?"
	}
	return strconv.Itoa(n)
}

func short(hash string) string { return or(hash[:min(hashDigits, len(hash))], "-") }

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
