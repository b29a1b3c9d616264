package report

import (
	"fmt"
	"time"
)

// anatomy is a bar for each handoff, in milliseconds.
type anatomy struct {
	box
	Ticks []tick
	Rows  []anatomyRow
}

type anatomyRow struct {
	box
	Label, Detail, Sum string
	SumX               px
	Bars               []bar
}

const (
	// What a wait is told from: it is measured by looking now and then.
	glances = 50 * time.Millisecond

	anatomyLeft  = 250
	anatomyRight = 230 // room for the sum and what is said of a wait
)

func (r Run) anatomy() anatomy {
	a := anatomy{box: box{anatomyLeft, 4, chartWidth - anatomyLeft - anatomyRight, rowHeight * px(len(r.Handoffs))}}
	var longest time.Duration
	for _, h := range r.Handoffs {
		longest = max(longest, h.Total())
	}
	t := timeline{a.box, max(longest, time.Millisecond)}
	step := max(time.Duration(nice(float64(t.length.Milliseconds())/6))*time.Millisecond, time.Millisecond)
	for d := time.Duration(0); d <= t.length; d += step {
		a.Ticks = append(a.Ticks, tick{t.x(d), Short(d)})
	}
	for i, h := range r.Handoffs {
		a.Rows = append(a.Rows, r.anatomyRow(h, box{a.X, a.Y + rowHeight*px(i), a.W, rowHeight}, t))
	}
	return a
}

func (r Run) anatomyRow(h Handoff, b box, t timeline) anatomyRow {
	row := anatomyRow{box: b, Label: fmt.Sprintf("%d → %d", h.From, h.To), Detail: r.cause(h), Sum: Short(h.Total())}
	if h.From < 0 {
		row.Label = fmt.Sprintf("→ %d", h.To)
	}
	if h.Waited > glances {
		row.Sum += " + " + Short(h.Waited) + " wait for its turn"
	}
	from := time.Duration(0)
	for _, part := range []struct {
		class, what string
		took        time.Duration
	}{{"prepare", "validate and prepare", h.Prepare}, {"starting", "start to LIVE", h.Live}, {"verify", "verify", h.Verify}} {
		if part.took <= 0 {
			continue
		}
		x, w := t.span(from, from+part.took)
		row.Bars = append(row.Bars, bar{box: box{x, b.Middle() - barHeight/2, w, barHeight}, Class: part.class, Tip: part.what + ": " + Short(part.took)})
		from += part.took
	}
	row.SumX = t.x(from) + 8
	return row
}

// cause is the step in which a handoff was committed.
func (r Run) cause(h Handoff) string {
	title := ""
	for _, s := range r.Steps {
		if s.At <= h.At {
			title = s.Title
		}
	}
	return title
}
