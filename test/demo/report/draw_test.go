package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"aether.internal/test/load"
)

// ruler is a timeline of 10 s at 100…1100.
var ruler = timeline{box{100, 0, 1000, 0}, 10 * time.Second}

func TestTimeBecomesX(t *testing.T) {
	for d, want := range map[time.Duration]px{0: 100, 5 * time.Second: 600, 10 * time.Second: 1100, -time.Second: 100, time.Minute: 1100} {
		if got := ruler.x(d); got != want {
			t.Errorf("%v is at %v, want %v", d, got, want)
		}
	}
	if x := (timeline{box{100, 0, 1000, 0}, 0}).x(time.Second); x != 100 {
		t.Errorf("in a run of no length: %v", x)
	}
}

func TestWhatIsShortStaysVisible(t *testing.T) {
	if x, w := ruler.span(time.Second, time.Second+time.Millisecond); x != 200 || w != 2 {
		t.Errorf("%v, %v", x, w)
	}
	if _, w := ruler.span(time.Second, 2*time.Second); w != 100 {
		t.Errorf("%v", w)
	}
}

func TestTicks(t *testing.T) {
	text := func(ticks []tick) string {
		var out []string
		for _, x := range ticks {
			out = append(out, x.Text+"@"+x.At.String())
		}
		return strings.Join(out, " ")
	}
	high := box{0, 0, 0, 100}
	for _, c := range []struct{ name, got, want string }{
		{"seconds", text(timeline{box{0, 0, 480, 0}, 48 * time.Second}.seconds()), "0 s@0.0 5 s@50.0 10 s@100.0 15 s@150.0 20 s@200.0 25 s@250.0 30 s@300.0 35 s@350.0 40 s@400.0 45 s@450.0"},
		{"a short run", text(timeline{box{0, 0, 20, 0}, 2 * time.Second}.seconds()), "0 s@0.0 1 s@10.0 2 s@20.0"},
		{"rates", text(linear{high, 400}.ticks()), "200@50.0 400@0.0"},
		{"many a second", text(linear{high, 6000}.ticks()), "2,000@66.7 4,000@33.3 6,000@0.0"},
		{"latencies", text(newDecades(high, 700, 30_000).ticks()), "0.1 ms@100.0 1 ms@66.7 10 ms@33.3 100 ms@0.0"},
		{"seconds of latency", text(newDecades(high, 200_000, 2_000_000).ticks()), "100 ms@100.0 1.00 s@50.0 10.0 s@0.0"},
		{"no latencies", text(newDecades(high, 0, 0).ticks()), "1 µs@100.0 10 µs@0.0"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, c.got, c.want)
		}
	}
}

func TestNice(t *testing.T) {
	for v, want := range map[float64]float64{0: 1, -3: 1, 1: 1, 1.1: 2, 4.8: 5, 5.1: 10, 100: 100, 0.03: 0.05} {
		if got := nice(v); math.Abs(got-want) > 1e-12 {
			t.Errorf("nice(%g) = %g, want %g", v, got, want)
		}
	}
}

func TestBars(t *testing.T) {
	r := sample()
	p := r.lanesPanel(ruler, r.newHues())
	var got []string
	for _, row := range p.Rows {
		line := row.Label + " " + row.Detail + " " + row.Hue + ":"
		for _, b := range row.Bars {
			line += fmt.Sprintf(" %s %v+%v %q", b.Class, b.X, b.W, b.Text)
		}
		if row.Mark != nil {
			line += fmt.Sprintf(" x %v %s %q", row.Mark.X, row.Mark.Anchor, row.Mark.Text)
		}
		got = append(got, line)
	}
	want := []string{
		`epoch 0 v1 · 1.39.3 hue0: starting 100.0+50.0 "" serving 150.0+370.0 "serves 3.70 s" draining 520.0+280.0 ""`,
		`epoch 1 v2 · 1.40.0 hue1: starting 510.0+10.0 "" serving 520.0+580.0 "serves 5.80 s"`,
		`refused never started : x 700.0 end "refused: no such field"`,
		`epoch 2 bad · 1.40.0 : starting 900.0+10.0 "" removing 910.0+10.0 "" x 915.0 end "taken back: it ended"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(p.Links) != 1 || p.Links[0].X != 520 || p.Links[0].From != 11.5 || p.Links[0].To != 34.5 {
		t.Errorf("links %+v", p.Links)
	}
}

func TestEveryPhaseHasAStyle(t *testing.T) {
	for _, phase := range []string{"starting", "live", "serving", "draining", "removing", "ending", "something new"} {
		if !strings.Contains(style, ".bar."+class(phase)) {
			t.Errorf("%s is drawn as %q, which has no style", phase, class(phase))
		}
	}
	for i := range colours {
		if !strings.Contains(style, fmt.Sprintf(".hue%d { fill", i)) {
			t.Errorf("hue%d has no style", i)
		}
	}
}

func TestRateIsStackedByWhoAnswered(t *testing.T) {
	r := sample()
	p := r.ratePanel(box{100, 0, 1000, 105}, ruler, r.newHues())
	if p.top != 157.5 {
		t.Errorf("the top is %g", p.top)
	}
	var got []string
	for _, a := range p.Areas {
		text := ""
		if a.Label != nil {
			text = fmt.Sprintf(" %q at %v,%v", a.Label.Text, a.Label.X, a.Label.Y)
		}
		got = append(got, fmt.Sprintf("%s %d%s", a.Hue, strings.Count(a.Path, "L"), text))
	}
	// 8 buckets of TCP, then 4 of each bootstrap: a corner at each end of each
	// bucket, above and below. TCP is never the most, so it is not named.
	if want := []string{"untold 31", `hue0 15 "v1" at 400.0,38.3`, `hue1 15 "v2" at 800.0,38.3`}; !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if path := p.Areas[1].Path; !strings.HasPrefix(path, "M200.0 5.0L300.0 5.0L") || !strings.HasSuffix(path, "L300.0 71.7L200.0 71.7Z") {
		t.Errorf("the first bootstrap's area is %s", path)
	}
}

func TestLatencyHasGaps(t *testing.T) {
	r := sample()
	r.Load.Timeline[2] = load.Bucket{OffsetMS: 2000, Failed: 5}
	p := r.latencyPanel(box{100, 0, 1000, 100}, ruler)
	if want := "M250.0 51.1L350.0 51.1M550.0 51.1L"; !strings.HasPrefix(p.P50, "M250.0") || strings.Count(p.P50, "M") != 2 || strings.Count(p.P99, "L") != 5 {
		t.Errorf("%s\nwant %s…", p.P50, want)
	}
}

func TestFailuresAreMarkedWhereTheyHappened(t *testing.T) {
	r := dropping()
	p := r.failuresPanel(box{100, 0, 1000, 20}, ruler)
	if len(p.Marks) != 1 || p.Marks[0].X != 500 || p.Marks[0].W != 100 || p.Marks[0].Tip != "3 failed" || p.None {
		t.Errorf("%+v", p)
	}
	none := sample()
	if p := none.failuresPanel(box{}, ruler); len(p.Marks) > 0 || !p.None {
		t.Errorf("%+v", p)
	}
	if (Run{}).failuresPanel(box{}, ruler).None {
		t.Error("without a load it says that nothing failed")
	}
}

func TestPinsEvadeEachOther(t *testing.T) {
	pins, bottom := sample().pins(ruler)
	if pins[0].Y != pins[1].Y || pins[2].Y != pins[1].Y+20 || (pins[2].X-pins[1].X).String() != "10.0" {
		t.Errorf("%+v", pins)
	}
	if bottom <= pins[2].Y+9 {
		t.Errorf("the plot begins at %v, within a pin", bottom)
	}
}

func TestPanelsDontOverlap(t *testing.T) {
	c := sample().chart()
	above := c.Plot.Y
	for _, b := range []box{c.Lanes.box, c.Rate.linear.box, c.Latency.decades.box, c.Failures.box} {
		if b.Y < above || b.H <= 0 {
			t.Errorf("a panel from %v to %v, after one that ends at %v", b.Y, b.Bottom(), above)
		}
		above = b.Bottom()
	}
	if c.Plot.Bottom() != above || c.H <= above {
		t.Errorf("the plot ends at %v and the drawing at %v; the last panel at %v", c.Plot.Bottom(), c.H, above)
	}
}

func TestAnatomy(t *testing.T) {
	r := sample()
	r.Handoffs[1].Waited = 2 * time.Second
	a := r.anatomy()
	first, second := a.Rows[0], a.Rows[1]
	if first.Label != "→ 0" || first.Detail != "start" || first.Sum != "400 ms" || len(first.Bars) != 1 || first.Bars[0].W != a.W {
		t.Errorf("%+v", first)
	}
	if second.Label != "0 → 1" || second.Detail != "break" || second.Sum != "200 ms + 2.00 s wait for its turn" || len(second.Bars) != 3 {
		t.Errorf("%+v", second)
	}
	for i, b := range second.Bars[1:] {
		if b.X != second.Bars[i].Right() {
			t.Errorf("bar %d begins at %v, the one before ends at %v", i+1, b.X, second.Bars[i].Right())
		}
	}
	if want := []string{"0", "100 ms", "200 ms", "300 ms", "400 ms"}; len(a.Ticks) != len(want) || a.Ticks[1].Text != want[1] {
		t.Errorf("ticks %v", a.Ticks)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 14 * time.Microsecond: "14 µs", 99 * time.Microsecond: "99 µs", 1234 * time.Microsecond: "1.2 ms",
		142 * time.Millisecond: "142 ms", 1760 * time.Millisecond: "1.76 s", 48300 * time.Millisecond: "48.3 s", 3 * time.Minute: "180 s",
	} {
		if got := Short(d); got != want {
			t.Errorf("Short(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q", n, got)
		}
	}
}

func TestBriefKeepsBothEnds(t *testing.T) {
	for in, want := range map[string]string{
		"short": "short",
		"the bootstrap is wrong, very wrong, so: no": "the … so: no",
		strings.Repeat("µ", 40):                      strings.Repeat("µ", 10) + " … " + strings.Repeat("µ", 10),
	} {
		if got := brief(in, 10, 10); got != want {
			t.Errorf("brief(%q) = %q, want %q", in, got, want)
		}
	}
}
