package envoy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"
)

// soon is a freeze's patience: long enough for an idle relay, too short for one
// that waits.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func (s *stand) freeze(ctx context.Context) (RelayState, ParentState) {
	s.Helper()
	relay, err := s.Relay.Freeze(ctx)
	wantNil(s.T, err)
	parent, err := s.asParent.Freeze(ctx)
	wantNil(s.T, err)
	return relay, parent
}

// moved makes the same sockets' relay and parent's end anew, as another program
// does in the same process.
func (s *stand) moved(relay RelayState, parent ParentState) *stand {
	return s.move(relay, parent, false)
}

func (s *stand) movedOrphan(relay RelayState, parent ParentState) *stand {
	return s.move(relay, parent, true)
}

func (s *stand) move(relay RelayState, parent ParentState, orphan bool) *stand {
	s.Helper()
	dup := func(socket, envoy int, err error) Resumed {
		wantNil(s.T, err)
		var r Resumed
		for into, fd := range map[**os.File]int{&r.Socket: socket, &r.Envoy: envoy} {
			if fd != NoFD {
				fd, err = syscall.Dup(fd)
				wantNil(s.T, err)
				*into = os.NewFile(uintptr(fd), "moved")
				s.Cleanup(func() { (*into).Close() })
			}
		}
		return r
	}
	m := &stand{T: s.T, parent: s.parent, child: s.child, seen: s.seen}
	log := slog.New(slog.DiscardHandler)
	from := dup(s.asParent.FDs())
	var err error
	m.asParent, err = ResumeParent(from, s.asParent.envoy.name.Name, s.asParent.answers.Name, parent, log)
	wantNil(s.T, err)
	from = dup(s.Relay.FDs())
	o := s.opts
	o.Parent = m.asParent
	if orphan {
		o.Parent = nil
	}
	m.Relay, err = ResumeRelay(from, o, relay)
	wantNil(s.T, err)
	return m
}

func TestFrozenNothingIsLostAndAnotherGoesOn(t *testing.T) {
	s := newStand(t)
	s.exchange(PassListenSocket)
	s.Commit()
	s.asks(DrainListeners)
	s.gets("parent", s.parent, request(DrainListeners))
	for range 3 { // frozen and thawed, as when an exec has failed
		s.freeze(soon(t))
		s.asks(StatsRequest)
		s.Relay.Thaw()
		s.asParent.Thaw()
		s.gets("parent", s.parent, request(StatsRequest))
		s.replies(answerFor(StatsRequest, time.Time{}))
		s.gets("newcomer", s.child, answerFor(StatsRequest, time.Time{}))
	}
	m := s.moved(s.freeze(soon(t)))
	s.asks(StatsRequest)
	m.gets("parent", s.parent, request(StatsRequest))
	m.replies(answerFor(StatsRequest, time.Time{}))
	m.gets("newcomer", s.child, answerFor(StatsRequest, time.Time{}))
	m.asks(Terminate) // still not passed
	m.exchange(StatsRequest)
	m.asParent.Gone()
	m.asks(StatsRequest)
	m.takesAnswer(StatsRequest)
	s.end()
	m.end()
}

func TestARelayWithoutAParentGoesOn(t *testing.T) {
	s := newStand(t)
	s.Commit()
	s.asParent.Gone()
	s.asks(StatsRequest)
	s.takesAnswer(StatsRequest)
	relay, parent := s.freeze(soon(t))
	if !relay.Gone || !parent.Gone || !relay.Committed {
		t.Errorf("%+v %+v", relay, parent)
	}
	m := s.movedOrphan(relay, parent)
	m.asks(StatsRequest)
	m.takesAnswer(StatsRequest)
	if _, err := ResumeRelay(Resumed{}, RelayOptions{}, RelayState{}); err == nil {
		t.Error("a relay without a parent that lives")
	}
	s.end()
	m.end()
}

func TestWhatWaitsForAnAnswerIsNotFrozen(t *testing.T) {
	s := newStand(t)
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
	if _, err := s.Relay.Freeze(soon(t)); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	if _, err := s.asParent.Freeze(soon(t)); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	s.Relay.Thaw()
	s.asParent.Thaw()
	s.replies(answerFor(StatsRequest, time.Time{}))
	s.gets("newcomer", s.child, answerFor(StatsRequest, time.Time{}))
	s.exchange(StatsRequest)
	// A drain that waits for the commit: a newcomer is on its way.
	s.asks(DrainListeners)
	s.sees(StatsRequest)
	s.sees(DrainListeners)
	if _, err := s.Relay.Freeze(soon(t)); !errors.Is(err, errBusy) {
		t.Error(err)
	}
	s.end() // frozen or not
}
