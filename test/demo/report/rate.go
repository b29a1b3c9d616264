package report

import (
	"slices"
	"strings"
	"time"

	"aether.internal/test/load"
)

// ratePanel is operations per second, stacked by the bootstrap that answered.
type ratePanel struct {
	linear
	Ticks []tick
	Areas []area
}

type area struct {
	Hue, Path, Tip string
	Label          *label
}

type label struct {
	X, Y px
	Text string
}

// series is one layer: a rate for each bucket.
type series struct {
	tag, hue string
	rates    []float64
}

func (r Run) ratePanel(b box, t timeline, hues hues) ratePanel {
	layers := r.layers(hues)
	base := make([]float64, len(r.Load.Timeline))
	top := 1.0
	for i := range base {
		sum := 0.0
		for _, l := range layers {
			sum += l.rates[i]
		}
		top = max(top, sum)
	}
	p := ratePanel{linear: linear{b, top * 1.05}}
	p.Ticks = p.ticks()
	whole := totals(layers)
	for _, l := range layers {
		if a, ok := r.area(p.linear, t, l, base, whole); ok {
			p.Areas = append(p.Areas, a)
		}
		for i, v := range l.rates {
			base[i] += v
		}
	}
	return p
}

// layers begin with what tells no epoch: raw TCP, and connections refused.
func (r Run) layers(hues hues) []series {
	seconds := r.Bucket.Seconds()
	rates := func(of func(load.Bucket) int) []float64 {
		all := make([]float64, len(r.Load.Timeline))
		for i, b := range r.Load.Timeline {
			all[i] = float64(of(b)) / seconds
		}
		return all
	}
	layers := []series{{"TCP", "untold", rates(untold)}}
	for _, tag := range r.tags() {
		layers = append(layers, series{tag, hues[tag], rates(func(b load.Bucket) int { return b.Epochs[tag] })})
	}
	return layers
}

func untold(b load.Bucket) int {
	n := b.OK + b.Failed
	for _, told := range b.Epochs {
		n -= told
	}
	return max(n, 0)
}

func totals(layers []series) []float64 {
	var sums []float64
	for _, l := range layers {
		if sums == nil {
			sums = make([]float64, len(l.rates))
		}
		for i, v := range l.rates {
			sums[i] += v
		}
	}
	return sums
}

// area is the outline of a layer on its base: forth along the top, back along
// the bottom.
func (r Run) area(scale linear, t timeline, l series, base, whole []float64) (area, bool) {
	first, last := extent(l.rates)
	if first < 0 {
		return area{}, false
	}
	var path strings.Builder
	corner := func(command string, x, y px) { path.WriteString(command + x.String() + " " + y.String()) }
	command := "M"
	for i := first; i <= last; i++ {
		y := scale.y(base[i] + l.rates[i])
		corner(command, r.x(t, i), y)
		command = "L"
		corner("L", r.x(t, i+1), y)
	}
	for i := last; i >= first; i-- {
		y := scale.y(base[i])
		corner("L", r.x(t, i+1), y)
		corner("L", r.x(t, i), y)
	}
	return area{Hue: l.hue, Path: path.String() + "Z", Tip: l.tip(), Label: r.label(scale, t, l, base, whole)}, true
}

func (l series) tip() string {
	if l.hue == "untold" {
		return "raw TCP: its answers don't tell who gave them"
	}
	return "answered by bootstrap " + l.tag
}

// x is the beginning of bucket i; the load began later than the run.
func (r Run) x(t timeline, i int) px {
	return t.x(r.Load.Start.Sub(r.Began) + time.Duration(i)*r.Bucket)
}

// extent is the first and the last bucket that isn't empty.
func extent(rates []float64) (first, last int) {
	first = -1
	for i, v := range rates {
		if v > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	return first, last
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// mostly keeps the rates that are the most of the whole, and worth a word.
func mostly(rates, whole []float64, least float64) []float64 {
	kept := make([]float64, len(rates))
	for i, v := range rates {
		if v > whole[i]/2 && v >= least {
			kept[i] = v
		}
	}
	return kept
}

// label names a layer where it is the most of the load, if there is room.
func (r Run) label(scale linear, t timeline, l series, base, whole []float64) *label {
	first, last := extent(mostly(l.rates, whole, median(whole)/2))
	const letter, line = 7.5, 16
	if first < 0 || r.x(t, last+1)-r.x(t, first) < px(len(l.tag))*letter {
		return nil
	}
	rate, below := median(l.rates[first:last+1]), median(base[first:last+1])
	if scale.y(0)-scale.y(rate) < line {
		return nil
	}
	return &label{X: (r.x(t, first) + r.x(t, last+1)) / 2, Y: scale.y(below + rate/2), Text: l.tag}
}
