package hotrestart

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// The simulator: a node's supervisors, their Envoys, users and bad luck, in
// simulated time. next is the real one, and so is the relay's logic; all else
// is a model. Nothing but a seed and a schedule decides what happens.
//
//	sim_world     the clock, and what happens next
//	sim_kernel    processes, sockets, seats, the segment, the admin's address
//	sim_envoy     Envoy's main thread; sim_start: its hot restart
//	sim_traffic   clients and their connections
//	sim_relay     the relay's sockets around its real logic; sim_parent: whom it asks
//	sim_shell     carries actions out, as shell.go does; sim_read, sim_child,
//	              sim_watch, sim_takeback, sim_watchdog: as the
//	              files of those names
//	sim_schedule  users and faults; sim_deeds, sim_ambush: what each does
//	sim_rules     what may never be; sim_end: what must come in the end
//	sim_story     a failing schedule, shortened and told
//	sim_faults    rules of the core broken on purpose
//	sim_facts     the tests on a real Envoy that prove the model

// world is one run: a node.
type world struct {
	setting
	now    time.Duration
	agenda agenda
	serial int

	kernel  kernel
	plane   plane
	user    user
	clients clients
	shells  []*simShell // supervisors, oldest first
	kubelet *kubelet    // nil: one supervisor, and nobody starts another
	rules   rules
	story   *story // nil: nobody listens

	slowUntil time.Duration // the machine is busy until then
	wall      time.Duration // by how much the node's clock has been set
	over      bool
}

// setting is what doesn't change during a run.
type setting struct {
	seed     uint64
	limits   Limits
	plain    bool // --relay=false
	ownAdmin bool // --admin-per-epoch
	noRepair bool // the shell repairs no segment, on purpose
	oldClock bool // and keeps times of another program's clock
	decide   func(State, Event) (State, []Action)
}

func newWorld(s schedule, decide func(State, Event) (State, []Action)) *world {
	w := &world{setting: settingOf(s.seed)}
	w.decide = decide
	w.kernel.w, w.clients.w, w.user.w, w.rules.w = w, w, w, w
	w.rules.owed, w.rules.answers, w.rules.pardons = map[int]*simShell{}, map[int]Result{}, map[int]string{}
	w.plane = plane{w: w, mood: planeGood}
	if s.pods {
		w.fleet()
	} else {
		w.start("supervisor")
	}
	w.user.follow(s)
	w.clients.arrive()
	return w
}

// settingOf draws the flags of a supervisor.
func settingOf(seed uint64) setting {
	d := dice(seed, 1)
	seconds := func(choices ...int) time.Duration {
		return time.Duration(choices[d.IntN(len(choices))]) * time.Second
	}
	drain := seconds(1, 5, 25)
	mode := d.IntN(8)
	return setting{
		seed:     seed,
		plain:    mode == 0,
		ownAdmin: mode == 1,
		limits: Limits{
			Handoff: seconds(12, 30, 120), GiveWay: 10 * time.Second,
			Drain: drain, Parent: drain + seconds(2, 15, 60), Kill: 5 * time.Second, Silent: 30 * time.Second,
		},
	}
}

// adminOf is where an epoch has its admin.
func (s setting) adminOf(b *bootstrap, epoch int) int {
	if s.ownAdmin {
		return -1 - epoch
	}
	return b.admin
}

// dice are random numbers of one purpose, so that a schedule without one of its
// deeds is the same schedule otherwise.
func dice(seed uint64, purpose int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(purpose)*0x9e3779b97f4a7c15))
}

// between is a time from a to b, mostly near a, and longer on a busy machine.
func (w *world) between(d *rand.Rand, a, b time.Duration) time.Duration {
	f := d.Float64()
	t := a + time.Duration(f*f*float64(b-a))
	if w.now < w.slowUntil {
		t *= 5
	}
	return t
}

// after does something later.
func (w *world) after(d time.Duration, do func()) { w.enter(d, nil, do) }

func (w *world) enter(d time.Duration, by *simShell, do func()) {
	w.serial++
	w.agenda.push(entry{w.now + d, w.serial, by, do})
}

// horizon is when every run has long come to its end.
const horizon = 6 * time.Hour

// run lets time pass until the supervisor has ended or a rule is broken.
func (w *world) run() *violation {
	for !w.over && w.rules.broken == nil && len(w.agenda) > 0 {
		e := w.agenda.pop()
		if w.now = e.at; w.now > horizon {
			w.rules.broke("rule 8: always an end", "not within %s", horizon)
		}
		switch s := e.by; {
		case s != nil && s.dead:
			continue
		case s != nil && w.now < s.pausedUntil:
			e.at = s.pausedUntil
			w.agenda.push(e)
			continue
		}
		e.do()
		w.rules.check()
	}
	return w.rules.broken
}

// living are the supervisors that run, oldest first.
func (w *world) living() []*simShell {
	var all []*simShell
	for _, s := range w.shells {
		if !s.dead && !s.over {
			all = append(all, s)
		}
	}
	return all
}

// newest is the supervisor that was started last, nil when none runs.
func (w *world) newest() *simShell {
	all := w.living()
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// tell adds a line to the story.
func (w *world) tell(who, format string, args ...any) {
	if w.story != nil {
		w.story.add(w.now, who, fmt.Sprintf(format, args...))
	}
}

// clock is simulated time as the core sees it: while a program runs its clock only
// goes on, whatever is done to the node's.
func (s *simShell) clock(t time.Duration) time.Time { return time.Unix(0, 0).Add(s.wall + t) }

// entry is something that will happen.
type entry struct {
	at     time.Duration
	serial int       // what was entered first happens first
	by     *simShell // in whose process; nil: nobody's
	do     func()
}

func (e entry) before(f entry) bool { return e.at < f.at || e.at == f.at && e.serial < f.serial }

// agenda is a heap, the next entry on top.
type agenda []entry

func (a *agenda) push(e entry) {
	*a = append(*a, e)
	h := *a
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if !h[i].before(h[up]) {
			return
		}
		h[i], h[up] = h[up], h[i]
		i = up
	}
}

func (a *agenda) pop() entry {
	h := *a
	top, last := h[0], len(h)-1
	h[0], h[last] = h[last], entry{}
	h = h[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if h[c].before(h[least]) {
				least = c
			}
		}
		if least == i {
			*a = h
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
