package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// lanesPanel is a row for each Envoy, and one for each input that never came
// to be one.
type lanesPanel struct {
	box
	Rows  []row
	Links []link
}

type row struct {
	box
	Label, Detail string
	Hue           string // class of the bootstrap's colour; empty: none
	Bars          []bar
	Mark          *mark
}

// bar is one phase.
type bar struct {
	box
	Class, Text, Tip string
}

// mark is the cross of something that did not come to serve.
type mark struct {
	X, Y      px
	Text, Tip string
	TextX     px
	Anchor    string
}

// link goes from the parent to the newcomer at the commit.
type link struct {
	X, From, To px
	Tip         string
}

const (
	rowHeight  = 23
	barHeight  = 15
	slimHeight = 7 // of what doesn't take new connections any more
)

// entry is a row that has no place yet.
type entry struct {
	at      time.Duration
	lane    *Lane
	refusal *Refusal
}

func (r Run) entries() []entry {
	var all []entry
	for i := range r.Lanes {
		all = append(all, entry{at: r.Lanes[i].begin(), lane: &r.Lanes[i]})
	}
	for i := range r.Refusals {
		x := &r.Refusals[i]
		if at := slices.IndexFunc(all, func(e entry) bool { return x.of(e.lane) }); at >= 0 {
			all[at].refusal = x
			continue
		}
		all = append(all, entry{at: x.At, refusal: x})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	return all
}

// of tells whether a refusal ended this life.
func (x Refusal) of(l *Lane) bool {
	if l == nil || !x.TakenBack || l.Epoch != x.Epoch || l.Length("serving") > 0 {
		return false
	}
	// The life was seen by glances, the refusal was logged: allow for one.
	const glance = 100 * time.Millisecond
	from, to := l.span()
	return x.At >= from-glance && x.At <= to+glance
}

func (r Run) lanesPanel(t timeline, hues hues) lanesPanel {
	entries := r.entries()
	p := lanesPanel{box: t.box}
	p.H = rowHeight * px(len(entries))
	at := map[int]px{} // the middle of each committed epoch's row
	for i, e := range entries {
		b := box{p.X, p.Y + rowHeight*px(i), p.W, rowHeight}
		p.Rows = append(p.Rows, e.row(b, t, hues))
		if e.lane != nil && e.lane.Length("serving") > 0 {
			at[e.lane.Epoch] = b.Middle()
		}
	}
	for _, h := range r.Restarts() {
		from, to := at[h.From], at[h.To]
		if from > 0 && to > 0 {
			p.Links = append(p.Links, link{X: t.x(h.At), From: from, To: to, Tip: fmt.Sprintf("at %s epoch %d hands over to epoch %d in %s", Short(h.At), h.From, h.To, Short(h.Total()))})
		}
	}
	return p
}

func (e entry) row(b box, t timeline, hues hues) row {
	r := row{box: b}
	if e.lane != nil {
		r.Label, r.Detail = fmt.Sprintf("epoch %d", e.lane.Epoch), e.lane.Tag+" · "+e.lane.Version
		r.Hue = hues[e.lane.Tag]
		for _, p := range e.lane.Phases {
			r.Bars = append(r.Bars, p.bar(b, t, e.lane))
		}
	}
	if e.refusal != nil {
		if e.lane == nil {
			r.Label, r.Detail = "refused", "never started"
		}
		r.Mark = e.refusal.mark(b, t)
	}
	return r
}

func (p Phase) bar(b box, t timeline, l *Lane) bar {
	height := px(barHeight)
	if p.Name == "draining" || p.Name == "ending" || p.Name == "removing" {
		height = slimHeight
	}
	x, w := t.span(p.From, p.To)
	c := bar{box: box{x, b.Middle() - height/2, w, height}, Class: class(p.Name)}
	c.Tip = fmt.Sprintf("epoch %d %s for %s, from %s to %s", l.Epoch, p.Name, Short(p.To-p.From), Short(p.From), Short(p.To))
	const letters = 80 // what "serves 12.3 s" takes
	if p.Name == "serving" && w > letters {
		c.Text = "serves " + Short(p.To-p.From)
	}
	return c
}

// class is the style of a phase.
func class(phase string) string {
	switch phase {
	case "starting", "live", "serving", "draining", "removing":
		return phase
	}
	return "draining" // ending is a moment of it
}

func (x Refusal) mark(b box, t timeline) *mark {
	what := "refused: " + x.Error
	if x.TakenBack {
		what = "taken back: " + x.Error
	}
	const gap, begin, end = 12, 37, 56
	m := &mark{X: t.x(x.At), Y: b.Middle(), Text: brief(what, begin, end), Tip: x.Step + ": " + x.Error, Anchor: "start"}
	m.TextX = m.X + gap
	if m.X > t.X+t.W*0.55 {
		m.TextX, m.Anchor = m.X-gap, "end"
	}
	return m
}
