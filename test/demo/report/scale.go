package report

import (
	"math"
	"strconv"
	"time"
)

// px is a place in the drawing, written with one decimal.
type px float64

func (p px) String() string { return strconv.FormatFloat(float64(p), 'f', 1, 64) }

// box is a rectangle; Y points down.
type box struct{ X, Y, W, H px }

func (b box) Right() px  { return b.X + b.W }
func (b box) Bottom() px { return b.Y + b.H }
func (b box) Middle() px { return b.Y + b.H/2 }

// timeline maps the run's time to X.
type timeline struct {
	box
	length time.Duration
}

func (t timeline) x(d time.Duration) px {
	if t.length <= 0 {
		return t.X
	}
	part := float64(d) / float64(t.length)
	return t.X + px(min(max(part, 0), 1))*t.W
}

// span is the X and the width of a stretch of time; what is short stays
// visible.
func (t timeline) span(from, to time.Duration) (x, w px) {
	const least = 2
	x = t.x(from)
	return x, max(t.x(to)-x, least)
}

// tick is a labelled line of an axis.
type tick struct {
	At   px
	Text string
}

// seconds are ticks at whole seconds, a dozen or fewer.
func (t timeline) seconds() []tick {
	step := time.Duration(nice(t.length.Seconds()/12)) * time.Second
	step = max(step, time.Second)
	var ticks []tick
	for d := time.Duration(0); d <= t.length; d += step {
		ticks = append(ticks, tick{t.x(d), strconv.Itoa(int(d.Seconds())) + " s"})
	}
	return ticks
}

// nice is the next of 1, 2, 5, 10, 20, 50 … that is not below v.
func nice(v float64) float64 {
	if v <= 0 {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// linear maps 0…top to a panel's height.
type linear struct {
	box
	top float64
}

func (l linear) y(v float64) px { return l.Bottom() - px(v/l.top)*l.H }

// ticks are two or three lines above the base.
func (l linear) ticks() []tick {
	var ticks []tick
	step := nice(l.top / 3)
	for v := step; v <= l.top*(1+1e-9); v += step {
		ticks = append(ticks, tick{l.y(v), Count(int(v))})
	}
	return ticks
}

// decades maps latencies to a panel's height by their logarithm, from a power
// of ten below low to one above high.
type decades struct {
	box
	low, high float64 // exponents of ten, of microseconds
}

func newDecades(b box, low, high int64) decades {
	d := decades{box: b, low: math.Floor(math.Log10(float64(max(low, 1)))), high: math.Ceil(math.Log10(float64(max(high, 1))))}
	d.high = max(d.high, d.low+1)
	return d
}

func (d decades) y(us int64) px {
	e := math.Log10(float64(max(us, 1)))
	return d.Bottom() - px((e-d.low)/(d.high-d.low))*d.H
}

func (d decades) ticks() []tick {
	var ticks []tick
	for e := d.low; e <= d.high; e++ {
		us := int64(math.Pow(10, e))
		text := Short(time.Duration(us) * time.Microsecond)
		if us >= 1000 && us < 1_000_000 {
			text = strconv.FormatInt(us/1000, 10) + " ms"
		}
		ticks = append(ticks, tick{d.y(us), text})
	}
	return ticks
}
