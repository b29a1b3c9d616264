package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// simParent is envoy.Parent: what an epoch answers its children comes to the
// supervisor, which asks one thing at a time and knows what is answered.
type simParent struct {
	w      *world
	epoch  int
	queue  []*simQuestion
	gone   bool
	closed bool
}

type simQuestion struct {
	request envoy.Request
	reply   func(ok bool)
	unless  func() bool // nobody wants the answer any more
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
	if l.gone || l.closed || len(l.queue) > 0 && !l.w.kernel.toParent(l.epoch, l.queue[0].request) {
		l.fail()
	}
}

// receive takes an answer. While the supervisor is stopped it waits in the
// socket.
func (l *simParent) receive() {
	l.w.ours(hop, func() {
		if len(l.queue) == 0 {
			return
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
func (l *simParent) isGone() { l.w.ours(hop, l.fail) }

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
	s.w.ours(time.Second, func() {
		if s.w.now-start < 2*time.Second {
			d -= time.Second
		}
		s.ownTime(d, over)
	})
}
