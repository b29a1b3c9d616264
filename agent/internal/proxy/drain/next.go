package drain

import (
	"errors"
	"time"
)

// goneAfter is for how long an Envoy that has answered must refuse before it is
// taken for dead: while one hands over to its child, nobody listens for a moment.
const goneAfter = 2 * time.Second

// markTime and markPause: how long, and how often, an unwritable marker is tried.
// Half of the least reserve, so that Envoy's own end still fits in.
const (
	markTime  = 500 * time.Millisecond
	markPause = 50 * time.Millisecond
)

// finishSlack is what Finish may take beyond its time before it is left behind.
const finishSlack = time.Second

// state is all that decisions are made of.
type state struct {
	times Times
	ready bool // we have been ready at least once
	seen  bool // Envoy's admin has answered at least once
	phase Phase
	asked bool // Envoy has taken the drain requests
	looks tally
	gone  time.Time // since when an Envoy that had answered refuses; zero: it doesn't
	leave bool      // Envoy is left alone
	out   Outcome
}

// What may happen. Each result belongs to the one call that is out.
type (
	event any

	stopped struct{}              // the first SIGTERM
	hurried struct{}              // the second
	elapsed struct{ phase Phase } // this phase has had its time
	looked  struct{ ending bool } // is the pod ending?
	told    struct{ err error }   // Envoy was asked to drain
	counted struct {
		of  Phase // in which it was asked for
		n   int
		err error
		at  time.Time
	}
	paused   struct{}            // time for the next look, or try
	finished struct{ err error } // Finish has returned
	marked   struct{ err error }
)

// What is to be done.
type (
	action any

	unready struct{}
	limit   struct { // post elapsed{phase} after that
		phase Phase
		after time.Duration
	}
	look    struct{}
	tell    struct{}
	count   struct{ of Phase }
	pause   struct{ d time.Duration } // post paused
	finish  struct{ within time.Duration }
	force   struct{} // the finish under way gets no more time
	mark    struct{}
	phaseIs struct{ phase Phase } // said, measured, shown
)

// next decides; it never acts. What comes too late for its phase changes nothing.
func next(s state, ev event) (state, []action) {
	switch ev := ev.(type) {
	case stopped:
		s.phase, s.out.Left = Delaying, unknown
		// The count tells whether anybody is there, and that Envoy's admin is.
		return s, []action{unready{}, phaseIs{Delaying}, limit{Delaying, s.times.Delay}, count{s.phase}}
	case hurried:
		return s.hurry()
	case elapsed:
		return s.elapse(ev.phase)
	case looked:
		return s.judge(ev.ending)
	case counted:
		return s.take(ev)
	case told:
		if s.phase != Draining {
			return s, nil
		}
		s.asked = ev.err == nil
		return s, []action{count{s.phase}}
	case paused:
		return s.again()
	case finished:
		if s.phase != Finishing {
			return s, nil
		}
		s.out.Finish = ev.err
		return s.afterFinish()
	case marked:
		return s.afterMark(ev.err)
	}
	return s, nil
}

func (s state) hurry() (state, []action) {
	s.out.Hurried = true
	switch s.phase {
	case Delaying, Ending, Draining:
		return s.toFinish(Skipped)
	case Finishing:
		return s, []action{force{}}
	}
	return s, nil
}

func (s state) elapse(phase Phase) (state, []action) {
	switch {
	case phase != s.phase:
		return s, nil
	case phase == Delaying:
		s.phase = Ending
		return s, []action{phaseIs{Ending}, look{}}
	case phase == Draining:
		return s.toFinish(Window)
	case phase == Finishing: // it was told to end, and doesn't
		s.out.Finish = errors.New("it goes on although its time is over")
		return s.afterFinish()
	case phase == Marking:
		if s.out.Marker == nil {
			s.out.Marker = errors.New("its file system doesn't answer")
		}
		return s.over()
	}
	return s, nil
}

// judge: a SIGTERM to a container alone (its own restart) must not drain an
// Envoy that goes on serving; nobody could undo that.
func (s state) judge(ending bool) (state, []action) {
	switch {
	case s.phase != Ending:
		return s, nil
	case !ending:
		s.leave = true
		return s.toFinish(NotEnding)
	}
	s.phase, s.looks = Draining, tally{}
	return s, []action{phaseIs{Draining}, limit{Draining, s.times.Window}, tell{}}
}

func (s state) take(c counted) (state, []action) {
	if c.err == nil {
		s.seen, s.gone, s.out.Left = true, time.Time{}, c.n
	} else if s.out.Left == 0 {
		s.out.Left = unknown // a failed count is not zero
	}
	switch s.phase {
	case Delaying:
		if s.unused(c) {
			return s.toFinish(Unused)
		}
		return s, nil
	case Draining:
		if c.of == Draining { // one that the delay began may come this late
			return s.watch(c)
		}
	}
	return s, nil
}

// unused: nobody was ever sent here, so nobody can still be coming.
func (s state) unused(c counted) bool {
	if s.ready {
		return false
	}
	return c.err == nil && c.n == 0 || errors.Is(c.err, ErrRefused)
}

func (s state) watch(c counted) (state, []action) {
	n := c.n
	if c.err != nil {
		n = unknown
	}
	if s.looks.add(n) {
		return s.toFinish(Idle)
	}
	if s.seen && errors.Is(c.err, ErrRefused) {
		if s.gone.IsZero() {
			s.gone = c.at
		}
		if c.at.Sub(s.gone) >= goneAfter {
			return s.toFinish(Gone)
		}
	} else {
		s.gone = time.Time{}
	}
	return s, []action{pause{s.looks.pause()}}
}

// again is the next look at Envoy, or the next try at the marker.
func (s state) again() (state, []action) {
	switch {
	case s.phase == Draining && !s.asked:
		return s, []action{tell{}}
	case s.phase == Draining:
		return s, []action{count{s.phase}}
	case s.phase == Marking:
		return s, []action{mark{}}
	}
	return s, nil
}

func (s state) toFinish(why string) (state, []action) {
	s.phase, s.out.Envoy = Finishing, why
	within := s.times.Timeout
	if s.out.Hurried {
		within = 0
	}
	return s, []action{phaseIs{Finishing}, limit{Finishing, within + finishSlack}, finish{within}}
}

func (s state) afterFinish() (state, []action) {
	if s.leave { // Envoy goes on: it must not find itself released
		return s.over()
	}
	s.phase = Marking
	return s, []action{phaseIs{Marking}, limit{Marking, markTime}, mark{}}
}

func (s state) afterMark(err error) (state, []action) {
	if s.phase != Marking {
		return s, nil
	}
	if s.out.Marker = err; err != nil {
		return s, []action{pause{markPause}}
	}
	return s.over()
}

func (s state) over() (state, []action) {
	s.phase = Over
	return s, []action{phaseIs{Over}}
}
