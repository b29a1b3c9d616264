package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"time"
)

var (
	//go:embed page.html.tmpl
	pageSource string
	//go:embed chart.svg.tmpl
	chartSource string
	//go:embed style.css
	style string
)

var pages = template.Must(template.Must(template.New("page").Funcs(template.FuncMap{
	"short": Short, "at": func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }, "count": Count, "inc": func(i int) int { return i + 1 }, "mod": func(a, b int) int { return a % b }, "add": func(a px, b float64) px { return a + px(b) },
}).Parse(pageSource)).Parse(chartSource))

// page is what the template sees.
type page struct {
	Run
	Style   template.CSS
	Tiles   []tile
	Chart   chart
	Anatomy anatomy
}

// tile is a figure to be seen from afar.
type tile struct {
	Value, Name string
	Good, Bad   bool
}

// Render writes the report as HTML.
func Render(w io.Writer, r Run) error {
	return pages.Execute(w, page{Run: r, Style: template.CSS(style), Tiles: r.tiles(), Chart: r.chart(), Anatomy: r.anatomy()})
}

// Write renders the report into a file, whole or not at all, and makes its
// directory.
func Write(path string, r Run) error {
	var out bytes.Buffer
	if err := Render(&out, r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	defer os.Remove(tmp.Name()) // nothing is there after the rename
	_, err = tmp.Write(out.Bytes())
	if err == nil {
		err = tmp.Chmod(0o644)
	}
	if closed := tmp.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func (r Run) tiles() []tile {
	failed := r.Load.Failures()
	_, median, _ := r.HandoffTimes()
	_, p99 := r.P99()
	return []tile{
		{Value: Count(failed), Name: "failed operations", Good: failed == 0 && r.Load.OK() > 0, Bad: failed > 0},
		{Value: Count(r.Load.Started()), Name: "operations"},
		{Value: Count(len(r.Restarts())), Name: "hot restarts"},
		{Value: Short(median), Name: "median handoff"},
		{Value: Count(len(r.Refusals)), Name: "bad inputs survived"},
		{Value: Short(p99), Name: "p99 of the slowest kind"},
	}
}
