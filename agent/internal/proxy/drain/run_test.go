package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pod is a pod that ends in simulated time. Its Envoy has as many connections as
// its script says at that moment, and everything that happens is written down.
type pod struct {
	began time.Time

	connections func(after time.Duration) (int, error)
	askErr      func(after time.Duration) error
	ending      func(after time.Duration) bool
	finish      func(context.Context) error
	markErr     func(after time.Duration) error

	mu     sync.Mutex
	story  []string // what happened, with its time: "13s ask"
	counts int
}

func (p *pod) after() time.Duration { return time.Since(p.began) }

func (p *pod) tell(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.story = append(p.story, fmt.Sprintf("%v %s", p.after().Round(time.Millisecond), what))
}

func (p *pod) Drain(context.Context) error {
	p.once("ask")
	if p.askErr != nil {
		return p.askErr(p.after())
	}
	return nil
}

func (p *pod) Connections(ctx context.Context) (int, error) {
	p.mu.Lock()
	p.counts++
	p.mu.Unlock()
	n, err := p.connections(p.after())
	if errors.Is(err, errHangs) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return n, err
}

var errHangs = errors.New("hangs")

func (p *pod) mark() error {
	var err error
	if p.markErr != nil {
		err = p.markErr(p.after())
	}
	if err == nil {
		p.tell("mark")
	}
	return err
}

// config is an hour-proof pod of the default times, ready, known, and ending.
func (p *pod) config() Config {
	p.began = time.Now()
	times, err := Plan(Times{DefaultGrace, Derive, Derive, Derive})
	if err != nil {
		panic(err)
	}
	cfg := Config{
		Times: times, Envoy: p, EnvoySeen: true, WasReady: true,
		Unready: func() { p.tell("unready") },
		Finish:  p.finish, Mark: p.mark, Log: slog.New(slog.DiscardHandler),
		Observe: func(st Status) {
			if st.Since.Equal(time.Now()) && st.Phase != Ending {
				p.once(string(st.Phase))
			}
		},
	}
	if p.ending != nil {
		cfg.Ending = func() bool { return p.ending(p.after()) }
	}
	return cfg
}

// once tells only the first time.
func (p *pod) once(what string) {
	p.mu.Lock()
	said := slices.ContainsFunc(p.story, func(s string) bool { return strings.HasSuffix(s, " "+what) })
	p.mu.Unlock()
	if !said {
		p.tell(what)
	}
}

func idle(time.Duration) (int, error) { return 0, nil }

// until a moment there are five connections.
func busyUntil(end time.Duration) func(time.Duration) (int, error) {
	return func(after time.Duration) (int, error) {
		if after < end {
			return 5, nil
		}
		return 0, nil
	}
}

func always(err error) func(time.Duration) error { return func(time.Duration) error { return err } }

func refusedFrom(start time.Duration) func(time.Duration) (int, error) {
	return func(after time.Duration) (int, error) {
		if after >= start {
			return 0, fmt.Errorf("%w: x", ErrRefused)
		}
		return 5, nil
	}
}

// Each bad day, the whole story of it, and how it ends.
func TestRun(t *testing.T) {
	full, cut := errors.New("no space left on device"), errors.New("3 streams were cut")
	for name, c := range map[string]struct {
		pod   *pod
		with  func(*Config)
		stop  time.Duration // a second stop after that
		story string
		out   Outcome
	}{
		"idle: over right after the delay": {
			pod:   &pod{connections: idle},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 13.01s finishing, 13.01s marking, 13.01s mark, 13.01s over",
			out:   Outcome{Envoy: Idle},
		},
		"busy: over when the last one has gone": {
			pod:   &pod{connections: busyUntil(18 * time.Second)},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 18.493s finishing, 18.493s marking, 18.493s mark, 18.493s over",
			out:   Outcome{Envoy: Idle},
		},
		"an instant without connections is not the end": {
			pod: &pod{connections: func(after time.Duration) (int, error) {
				if after == 13*time.Second || after > 20*time.Second {
					return 0, nil
				}
				return 5, nil
			}},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 20.493s finishing, 20.493s marking, 20.493s mark, 20.493s over",
			out:   Outcome{Envoy: Idle},
		},
		"never idle: the window": {
			pod:   &pod{connections: busyUntil(time.Hour)},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 28s finishing, 28s marking, 28s mark, 28s over",
			out:   Outcome{Envoy: Window, Left: 5},
		},
		"a failed count is not zero": {
			pod:   &pod{connections: func(time.Duration) (int, error) { return 0, errors.New("half an answer") }},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 28s finishing, 28s marking, 28s mark, 28s over",
			out:   Outcome{Envoy: Window, Left: -1},
		},
		"a wedged Envoy": {
			pod:   &pod{connections: func(time.Duration) (int, error) { return 0, errHangs }, askErr: always(errHangs)},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 28s finishing, 28s marking, 28s mark, 28s over",
			out:   Outcome{Envoy: Window, Left: -1},
		},
		"Envoy dies in the delay": {
			pod:   &pod{connections: refusedFrom(5 * time.Second), askErr: always(ErrRefused)},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 15.243s finishing, 15.243s marking, 15.243s mark, 15.243s over",
			out:   Outcome{Envoy: Gone, Left: 5},
		},
		"an admin that never answered may be a wrong address": {
			pod:   &pod{connections: refusedFrom(0)},
			with:  func(cfg *Config) { cfg.EnvoySeen = false },
			story: "0s unready, 0s delay, 13s draining, 13s ask, 28s finishing, 28s marking, 28s mark, 28s over",
			out:   Outcome{Envoy: Window, Left: -1},
		},
		"Envoy refuses while it hands over": {
			pod: &pod{connections: func(after time.Duration) (int, error) {
				if after > 14*time.Second && after < 15*time.Second {
					return 0, ErrRefused
				}
				return busyUntil(18 * time.Second)(after)
			}},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 18.493s finishing, 18.493s marking, 18.493s mark, 18.493s over",
			out:   Outcome{Envoy: Idle},
		},
		"only this container stops": {
			pod:   &pod{connections: busyUntil(time.Hour), ending: func(time.Duration) bool { return false }},
			story: "0s unready, 0s delay, 15s finishing, 15s over",
			out:   Outcome{Envoy: NotEnding, Left: 5},
		},
		"the waiter is late": {
			pod:   &pod{connections: idle, ending: func(after time.Duration) bool { return after > 14*time.Second }},
			story: "0s unready, 0s delay, 14.1s draining, 14.1s ask, 14.11s finishing, 14.11s marking, 14.11s mark, 14.11s over",
			out:   Outcome{Envoy: Idle},
		},
		"stopped before it was ready": {
			pod:   &pod{connections: refusedFrom(0)},
			with:  func(cfg *Config) { cfg.WasReady = false },
			story: "0s unready, 0s delay, 0s finishing, 0s marking, 0s mark, 0s over",
			out:   Outcome{Envoy: Unused, Left: -1},
		},
		"stopped before it was ready, but somebody is there": {
			pod:   &pod{connections: busyUntil(14 * time.Second)},
			with:  func(cfg *Config) { cfg.WasReady = false },
			story: "0s unready, 0s delay, 13s draining, 13s ask, 14.493s finishing, 14.493s marking, 14.493s mark, 14.493s over",
			out:   Outcome{Envoy: Idle},
		},
		"stopped twice in the delay": {
			pod: &pod{connections: busyUntil(time.Hour)}, stop: 4 * time.Second,
			story: "0s unready, 0s delay, 4s finishing, 4s marking, 4s mark, 4s over",
			out:   Outcome{Envoy: Skipped, Left: 5, Hurried: true},
		},
		"stopped twice in the window": {
			pod: &pod{connections: busyUntil(time.Hour)}, stop: 20 * time.Second,
			story: "0s unready, 0s delay, 13s draining, 13s ask, 20s finishing, 20s marking, 20s mark, 20s over",
			out:   Outcome{Envoy: Skipped, Left: 5, Hurried: true},
		},
		"stopped twice while what is beside finishes": {
			pod:   &pod{connections: idle, finish: func(ctx context.Context) error { <-ctx.Done(); return cut }},
			stop:  20 * time.Second,
			story: "0s unready, 0s delay, 13s draining, 13s ask, 13.01s finishing, 20s marking, 20s mark, 20s over",
			out:   Outcome{Envoy: Idle, Hurried: true, Finish: cut},
		},
		"what is beside takes its time": {
			pod:   &pod{connections: idle, finish: func(ctx context.Context) error { sleep(ctx, 5*time.Second); return nil }},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 13.01s finishing, 18.01s marking, 18.01s mark, 18.01s over",
			out:   Outcome{Envoy: Idle},
		},
		"what is beside is cut at its limit": {
			pod:   &pod{connections: idle, finish: func(ctx context.Context) error { <-ctx.Done(); return cut }},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 13.01s finishing, 40.01s marking, 40.01s mark, 40.01s over",
			out:   Outcome{Envoy: Idle, Finish: cut},
		},
		"a full disk, for a moment": {
			pod: &pod{connections: idle, markErr: func(after time.Duration) error {
				if after < 13200*time.Millisecond {
					return full
				}
				return nil
			}},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 13.01s finishing, 13.01s marking, 13.21s mark, 13.21s over",
			out:   Outcome{Envoy: Idle},
		},
		"a full disk": {
			pod:   &pod{connections: idle, markErr: always(full)},
			story: "0s unready, 0s delay, 13s draining, 13s ask, 13.01s finishing, 13.01s marking, 13.51s over",
			out:   Outcome{Envoy: Idle, Marker: full},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := c.pod.config()
				if c.with != nil {
					c.with(&cfg)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.stop > 0 {
					defer time.AfterFunc(c.stop, cancel).Stop()
				}
				if out := Run(ctx, cfg); out != c.out {
					t.Errorf("got  %+v\nwant %+v", out, c.out)
				}
				if story := strings.Join(c.pod.story, ", "); story != c.story {
					t.Errorf("\ngot  %s\nwant %s", story, c.story)
				}
			})
		})
	}
}

// However everything hangs, Run returns before the kubelet kills.
func TestRunEndsWithinTheGracePeriodWhateverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		p := pod{connections: func(time.Duration) (int, error) { return 0, errHangs }, askErr: always(errHangs)}
		cfg := p.config()
		cfg.Finish = func(context.Context) error { <-forever; return nil }
		cfg.Mark = func() error { <-forever; return nil }
		cfg.Ending = func() bool { return p.after() > 14*time.Second }
		out := Run(t.Context(), cfg)
		if took := p.after(); took > cfg.Times.Grace {
			t.Errorf("took %v of %v", took, cfg.Times.Grace)
		}
		if out.Finish == nil || out.Marker == nil {
			t.Errorf("%+v", out)
		}
		close(forever)
	})
}

// What the polling costs: a dozen looks at an Envoy that needs five seconds.
func TestRunLooksNoMoreThanFourTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pod{connections: busyUntil(time.Hour)}
		Run(t.Context(), p.config())
		if p.counts > 15*4+10 {
			t.Errorf("%d looks in 15s", p.counts)
		}
		t.Logf("%d looks in a window of 15s", p.counts)
	})
}

// Every event in every phase has an answer, and none leads back.
func TestNextNeverGoesBack(t *testing.T) {
	events := []event{
		hurried{}, elapsed{Delaying}, elapsed{Ending}, elapsed{Draining}, elapsed{Finishing}, elapsed{Marking}, elapsed{Over},
		looked{true}, looked{false}, told{}, told{errHangs}, counted{}, counted{of: Draining}, counted{of: Draining, n: 3},
		counted{of: Draining, err: ErrRefused}, paused{}, finished{}, finished{errHangs}, marked{}, marked{errHangs},
	}
	for _, phase := range Phases {
		for _, ev := range events {
			s, actions := next(state{phase: phase, ready: true}, ev)
			if slices.Index(Phases, s.phase) < slices.Index(Phases, phase) {
				t.Errorf("%s, %#v: back to %s", phase, ev, s.phase)
			}
			if phase == Over && len(actions) > 0 {
				t.Errorf("%#v after the end: %v", ev, actions)
			}
			if s.phase != phase && !slices.Contains(actions, action(phaseIs{s.phase})) {
				t.Errorf("%s, %#v: %s is not told", phase, ev, s.phase)
			}
		}
	}
}
