package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simParent is envoy.Parent: what an epoch answers its children comes to the
// supervisor, which asks one thing at a time and knows what is answered.
type simParent struct {
	s      *simShell // whose it is
	epoch  int
	met    *simEnvoy // that very Envoy
	queue  []*simQuestion
	gone   bool
	closed bool
}

type simQuestion struct {
	request envoy.Request
	reply   func(ok bool)
	unless  func() bool // nobody wants the answer any more
}

// relinked asks once more: what was asked may have been answered elsewhere.
func (l *simParent) relinked() {
	if len(l.queue) > 0 {
		l.queue = append([]*simQuestion{{envoy.StatsRequest, func(bool) {}, func() bool { return false }}}, l.queue...)
		l.next()
	}
}

func (l *simParent) ask(q *simQuestion) {
	l.queue = append(l.queue, q)
	if len(l.queue) == 1 {
		l.next()
	}
}

// next asks the first question that is still wanted.
func (l *simParent) next() {
	for len(l.queue) > 0 && l.queue[0].unless() {
		l.queue = l.queue[1:]
	}
	if l.gone || l.closed || len(l.queue) > 0 && !l.say(l.queue[0].request) {
		l.fail()
	}
}

func (l *simParent) alive() bool { return l != nil && !l.closed && !l.s.dead }

// say reaches the Envoy that was met, or nobody.
func (l *simParent) say(r envoy.Request) bool {
	if l.met == nil {
		l.meet()
	}
	if l.met == nil || !l.met.alive {
		return false
	}
	l.met.asked(r)
	return true
}

func (l *simParent) meet() { l.met = l.s.w.kernel.at(l.epoch) }

// receive takes an answer. While the supervisor is stopped it waits in the
// socket.
func (l *simParent) receive(r envoy.Request) {
	l.s.ours(hop, func() {
		if len(l.queue) == 0 || l.queue[0].request != r {
			return // what another supervisor, or nobody any more, has asked
		}
		q := l.queue[0]
		l.queue = l.queue[1:]
		if !q.unless() {
			q.reply(true)
		}
		l.next()
	})
}

// isGone comes after what the dead one had answered.
func (l *simParent) isGone() { l.s.ours(hop, l.fail) }

func (l *simParent) fail() {
	l.gone = true
	queue := l.queue
	l.queue = nil
	for _, q := range queue {
		if !q.unless() {
			q.reply(false)
		}
	}
}

// ownTime is that of watchdog.go.
func (s *simShell) ownTime(d time.Duration, over func()) {
	if d <= 0 {
		over()
		return
	}
	start := s.w.now
	s.ours(time.Second, func() {
		if s.w.now-start < 2*time.Second {
			d -= time.Second
		}
		s.ownTime(d, over)
	})
}
