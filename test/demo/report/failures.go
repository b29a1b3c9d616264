package report

import "fmt"

// failuresPanel has a red mark for each bucket with failures.
type failuresPanel struct {
	box
	Marks []bar
	Sum   int
	None  bool // a load, and no failure
}

func (r Run) failuresPanel(b box, t timeline) failuresPanel {
	p := failuresPanel{box: b, Sum: r.Load.Failures(), None: r.Load.Failures() == 0 && r.Load.OK() > 0}
	for i, bucket := range r.Load.Timeline {
		if bucket.Failed == 0 {
			continue
		}
		x, w := r.x(t, i), max(r.x(t, i+1)-r.x(t, i), 3)
		p.Marks = append(p.Marks, bar{box: box{x, b.Y + 2, w, b.H - 4}, Tip: fmt.Sprintf("%d failed", bucket.Failed)})
	}
	return p
}
