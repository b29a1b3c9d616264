package main

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"aether.internal/test/demo/report"
	"aether.internal/test/node"
)

// What the supervisor's log says of decisions that leave no other trace.
const (
	saysServes    = "epoch serves"
	saysRefused   = "restart refused"
	saysTakenBack = "newcomer is taken back"
	saysUnchanged = "no restart"
	saysEnded     = "old epoch has ended"
)

// chronicle makes the epochs' lives out of what was seen of them.
type chronicle struct {
	lives    []*life
	handoffs []report.Handoff
	waited   time.Duration // of the handoff that is pending, for its turn
	last     sight
}

// life is one Envoy's. Its last phase is open until it is over.
type life struct {
	epoch, pid int
	version    string
	config     string        // SHA-256
	waited     time.Duration // before it was started, for its turn
	phases     []phase
	over       bool
}

type phase struct {
	name     string
	from, to time.Time
}

// observe takes in what is seen now.
func (c *chronicle) observe(now sight) {
	if c.last.at.IsZero() {
		c.last.at = now.at
	}
	if p := c.last.status.Pending; p != nil && strings.HasPrefix(p.WaitsFor, "epoch ") {
		c.waited += now.at.Sub(c.last.at)
	}
	for _, e := range now.status.Epochs {
		c.lived(e, now.at)
	}
	for _, l := range c.lives {
		if e := now.status.Of(l.epoch); !l.over && (e == nil || !l.is(*e)) {
			l.end(now.at)
		}
	}
	c.handedOver(now)
	c.last = now
}

func (c *chronicle) lived(e node.Epoch, at time.Time) {
	l := c.of(e)
	if l == nil {
		l = &life{epoch: e.Epoch, config: e.ConfigHash, waited: c.waited}
		c.lives, c.waited = append(c.lives, l), 0
	}
	l.pid, l.version = e.PID, e.EnvoyVersion
	if n := len(l.phases); n == 0 || l.phases[n-1].name != e.State {
		l.close(at)
		l.phases = append(l.phases, phase{name: e.State, from: at})
	}
}

// of is the life of a living epoch. A number can be lived twice: a newcomer
// that is taken back uses up none.
func (c *chronicle) of(e node.Epoch) *life {
	for _, l := range c.lives {
		if !l.over && l.is(e) {
			return l
		}
	}
	return nil
}

func (l *life) is(e node.Epoch) bool {
	return l.epoch == e.Epoch && (l.pid == 0 || l.pid == e.PID) && l.config == e.ConfigHash
}

func (l *life) close(at time.Time) {
	if n := len(l.phases); n > 0 {
		l.phases[n-1].to = at
	}
}

func (l *life) end(at time.Time) {
	l.close(at)
	l.over = true
}

// handedOver notes a commit. What it waited before its turn came, for the
// handoff before it or for one of three generations to end, isn't its own time.
func (c *chronicle) handedOver(now sight) {
	h := now.status.LastHandoff
	if h == nil || len(c.handoffs) > 0 && c.handoffs[len(c.handoffs)-1].To == h.To {
		return
	}
	prepare := milliseconds(h.Milliseconds.Prepare)
	waited := min(c.waitedBefore(h.To), prepare)
	c.handoffs = append(c.handoffs, report.Handoff{
		From: h.From, To: h.To, Waited: waited, Prepare: prepare - waited,
		Live: milliseconds(h.Milliseconds.Live), Verify: milliseconds(h.Milliseconds.Verify),
	})
}

func (c *chronicle) waitedBefore(epoch int) time.Duration {
	for _, l := range slices.Backward(c.lives) { // a number can be lived twice
		if l.epoch == epoch {
			return l.waited
		}
	}
	return 0
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// lanes are all lives, in the order of their beginning; times count from
// began. The log knows the moment of each commit better than a glance does.
func (c *chronicle) lanes(began time.Time, lines []node.Line, tags map[string]string) []report.Lane {
	c.refine(lines)
	lanes := make([]report.Lane, 0, len(c.lives))
	for _, l := range c.lives {
		lane := report.Lane{Epoch: l.epoch, Version: l.version, Tag: tags[l.config]}
		for _, p := range l.phases {
			to := p.to
			if to.IsZero() {
				to = c.last.at
			}
			lane.Phases = append(lane.Phases, report.Phase{Name: p.name, From: p.from.Sub(began), To: max(to.Sub(began), p.from.Sub(began))})
		}
		lanes = append(lanes, lane)
	}
	return lanes
}

// refine moves the beginning of serving, the end of the parent's, and the end
// of draining to where the log has them.
func (c *chronicle) refine(lines []node.Line) {
	for _, line := range lines {
		if line.Source != "" || !line.Time.Before(c.last.at) {
			continue
		}
		for _, l := range c.lives {
			switch line.Message {
			case saysServes:
				l.begin("serving", line.Epoch, line.Time)
				l.begin("draining", line.Epoch-1, line.Time)
			case saysEnded:
				l.ended(line.Epoch, line.Time)
			}
		}
	}
}

// ended lets a life end earlier than a glance saw it.
func (l *life) ended(epoch int, at time.Time) {
	last := &l.phases[len(l.phases)-1]
	drained := last.name == "draining" || last.name == "ending"
	if l.epoch == epoch && l.over && drained && at.After(last.from) && at.Before(last.to) {
		last.to = at
	}
}

// begin lets a phase of this epoch begin at the given time, where that is
// between its neighbours.
func (l *life) begin(name string, epoch int, at time.Time) {
	for i := range l.phases {
		p := &l.phases[i]
		if l.epoch != epoch || p.name != name || i > 0 && at.Before(l.phases[i-1].from) || !p.to.IsZero() && at.After(p.to) {
			continue
		}
		p.from = at
		if i > 0 {
			l.phases[i-1].to = at
		}
	}
}

// commits sets the time of each handoff, from the log.
func (c *chronicle) commits(began time.Time, lines []node.Line) []report.Handoff {
	for _, line := range lines {
		if line.Source != "" || line.Message != saysServes {
			continue
		}
		for i := range c.handoffs {
			if c.handoffs[i].To == line.Epoch {
				c.handoffs[i].At = line.Time.Sub(began)
			}
		}
	}
	return c.handoffs
}

// refusals are what did not become a serving epoch, and why.
func refusals(began time.Time, lines []node.Line) []report.Refusal {
	var all []report.Refusal
	words := map[int]string{} // the last ones of each epoch's Envoy
	for _, line := range lines {
		takenBack := line.Message == saysTakenBack
		if line.Source == "envoy" {
			words[line.Epoch] = line.Message
		}
		if line.Source != "" || line.Message != saysRefused && !takenBack {
			continue
		}
		var why struct{ Step, Error string }
		_ = json.Unmarshal([]byte(line.Raw), &why) // empty when it says nothing
		if last := words[line.Epoch]; takenBack && last != "" {
			why.Error += ": " + last
		}
		all = append(all, report.Refusal{At: line.Time.Sub(began), Epoch: line.Epoch, TakenBack: takenBack, Step: why.Step, Error: why.Error})
	}
	return all
}
