package report

// chart is the timeline: panels above each other on one axis of time.
type chart struct {
	W, H     px
	Plot     box // all panels
	Pins     []pin
	Seconds  []tick
	Lanes    lanesPanel
	Rate     ratePanel
	Latency  latencyPanel
	Failures failuresPanel
}

// pin is the number of a step above the moment it was taken.
type pin struct {
	X, Y   px
	Number int
	Tip    string
	Failed bool
}

const (
	chartWidth = 1200
	left       = 196 // room for labels
	right      = 16
	panelGap   = 26
)

func (r Run) chart() chart {
	c := chart{W: chartWidth}
	hues := r.newHues()
	t := timeline{box{left, 0, chartWidth - left - right, 0}, r.Length}
	var bottom px
	c.Pins, bottom = r.pins(t)
	t.Y = bottom + 6
	c.Lanes = r.lanesPanel(t, hues)
	c.Rate = r.ratePanel(box{t.X, c.Lanes.Bottom() + panelGap, t.W, 150}, t, hues)
	c.Latency = r.latencyPanel(box{t.X, c.Rate.Bottom() + panelGap, t.W, 110}, t)
	c.Failures = r.failuresPanel(box{t.X, c.Latency.Bottom() + panelGap, t.W, 20}, t)
	c.Plot = box{t.X, bottom, t.W, c.Failures.Bottom() - bottom}
	c.Seconds = t.seconds()
	c.H = c.Plot.Bottom() + 28
	return c
}

// pins evade each other: two that are close stand in two rows.
func (r Run) pins(t timeline) (pins []pin, bottom px) {
	const top, apart, rowStep = 12, 22, 20
	rows := []px{-apart} // the X of the last pin of each row
	for i, s := range r.Steps {
		x, at := t.x(s.At), 0
		for at < len(rows) && x-rows[at] < apart {
			at++
		}
		if at == len(rows) {
			rows = append(rows, x)
		}
		rows[at] = x
		pins = append(pins, pin{X: x, Y: top + rowStep*px(at), Number: i + 1, Tip: s.Title + ": " + s.Outcome, Failed: s.Failed})
	}
	return pins, top + rowStep*px(len(rows)) - rowStep/2 + 4
}
