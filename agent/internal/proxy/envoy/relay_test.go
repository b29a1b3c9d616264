package envoy

import (
	"bytes"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// stand is a relay between two sockets of the test.
type stand struct {
	*testing.T
	*Relay
	parent, child *net.UnixConn
	seen          chan Request
}

func newStand(t *testing.T) *stand {
	t.Helper()
	dir := shortDir(t)
	s := &stand{T: t, seen: make(chan Request, 100)}
	s.parent, s.child = bind(t, filepath.Join(dir, "parent")), bind(t, filepath.Join(dir, "child"))
	var err error
	s.Relay, err = StartRelay(RelayOptions{
		Listen: filepath.Join(dir, "relay"), Parent: filepath.Join(dir, "parent"), Child: filepath.Join(dir, "child"),
		FirstStart: time.Unix(1000, 0), Seen: func(r Request) { s.seen <- r }, Log: slog.New(slog.DiscardHandler),
	})
	wantNil(t, err)
	return s
}

func bind(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", unixgram(path))
	wantNil(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func request(r Request) []byte { return frame(0x0a, 2, byte(r)<<3|2, 0) }

// asks is a request of the newcomer.
func (s *stand) asks(r Request) {
	s.Helper()
	_, err := s.child.WriteToUnix(request(r), unixgram(s.opts.Listen))
	wantNil(s.T, err)
}

// gets waits for the next datagram at a socket.
func (s *stand) gets(what string, at *net.UnixConn, want []byte) {
	s.Helper()
	at.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, largestDatagram)
	n, err := at.Read(buf)
	if err != nil || !bytes.Equal(buf[:n], want) {
		s.Errorf("%s: % x, %v; want % x", what, buf[:n], err, want)
	}
}

func (s *stand) sees(want Request) {
	s.Helper()
	select {
	case got := <-s.seen:
		if got != want {
			s.Errorf("seen: %v, want %v", got, want)
		}
	case <-time.After(10 * time.Second):
		s.Errorf("%v was not seen", want)
	}
}

func TestRelayWithholdsTheDrainUntilTheCommit(t *testing.T) {
	s := newStand(t)
	defer s.Close()
	s.asks(PassListenSocket)
	s.gets("parent", s.parent, request(PassListenSocket))
	s.asks(DrainListeners)
	s.asks(Terminate)
	s.asks(StatsRequest)
	s.gets("parent, past what was withheld", s.parent, request(StatsRequest))
	s.Commit()
	s.gets("parent after the commit", s.parent, request(DrainListeners))
	s.asks(PassListenSocket)
	s.gets("parent later", s.parent, request(PassListenSocket))
	for _, r := range []Request{PassListenSocket, DrainListeners, Terminate, StatsRequest} {
		s.sees(r)
	}
	if len(s.seen) > 0 {
		t.Errorf("seen twice: %v", <-s.seen)
	}
}

// The request that the parent had not answered is answered too (fact 28).
func TestRelayAnswersForAParentThatIsGone(t *testing.T) {
	s := newStand(t)
	defer s.Close()
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
	s.ParentGone()
	s.gets("newcomer, of its own accord", s.child, answerBegun)
	s.gets("newcomer, since it has read that", s.child, restOf(answerFor(StatsRequest, time.Time{})))
	s.asks(ShutdownAdmin)
	s.gets("newcomer", s.child, answerFor(ShutdownAdmin, time.Unix(1000, 0)))
}

// One answer too many would be taken for that of the next request.
func TestRelayAnswersNothingTwice(t *testing.T) {
	s := newStand(t)
	defer s.Close()
	s.asks(PassListenSocket)
	s.gets("parent", s.parent, request(PassListenSocket))
	s.ParentGone() // but it had answered
	s.asks(Terminate)
	s.asks(StatsRequest)
	s.sees(PassListenSocket)
	s.sees(Terminate)
	s.sees(StatsRequest)
	s.gets("newcomer", s.child, answerBegun)
	s.gets("newcomer", s.child, restOf(answerFor(StatsRequest, time.Time{})))
	s.asks(PassListenSocket)
	s.gets("newcomer", s.child, answerFor(PassListenSocket, time.Time{}))
}

// A newcomer as Envoy is one, whose parent may die at any moment: each answer
// is of the kind it asked for.
func TestRelayKeepsQuestionsAndAnswersInStep(t *testing.T) {
	kinds := []Request{ShutdownAdmin, PassListenSocket, PassListenSocket, StatsRequest, StatsRequest, PassListenSocket}
	for round := range 60 {
		s := newStand(t)
		died := make(chan struct{})
		go func() { // the parent; joined below
			defer close(died)
			s.answersThenDies(round % 7)
		}()
		for _, kind := range kinds {
			s.asks(kind)
			s.takesAnswer(kind)
		}
		<-died
		s.Close()
	}
}

// answersThenDies is a parent that gives n answers. Every other one dies with
// a request outstanding.
func (s *stand) answersThenDies(n int) {
	buf := make([]byte, largestDatagram)
	for ; n > 0; n-- {
		got, err := s.parent.Read(buf)
		if err != nil {
			return // it was to give more than it was asked for
		}
		s.parent.WriteToUnix(answerFor(ParseRequest(buf[:got]), time.Time{}), s.toChild)
	}
	s.parent.SetReadDeadline(time.Now().Add(3 * time.Millisecond))
	s.parent.Read(buf)
	s.parent.Close()
	s.ParentGone()
}

// takesAnswer reads a whole answer, in one datagram or more.
func (s *stand) takesAnswer(kind Request) {
	s.Helper()
	s.child.SetReadDeadline(time.Now().Add(10 * time.Second))
	var got []byte
	buf := make([]byte, largestDatagram)
	for len(got) < frameHeader || len(got) < frameHeader+int(got[frameHeader-1]) {
		n, err := s.child.Read(buf)
		if err != nil {
			s.Fatalf("the answer to %v: %v", kind, err)
		}
		got = append(got, buf[:n]...)
	}
	if want := answerFor(kind, time.Time{}); !bytes.Equal(got[frameHeader+2:frameHeader+3], want[frameHeader+2:frameHeader+3]) {
		s.Fatalf("asked for %v, answered % x", kind, got)
	}
}

// Envoy aborts for what is no request, and the parent is the one that serves.
func TestRelayPassesNothingThatIsNoRequest(t *testing.T) {
	s := newStand(t)
	defer s.Close()
	for _, d := range [][]byte{
		{}, {0}, []byte("garbage"), bytes.Repeat([]byte{0xff}, 4096), bytes.Repeat([]byte{1}, largestDatagram),
		request(StatsRequest)[:9], append(request(StatsRequest), 0), frame(0x12, 2, 0x1a, 0), frame(0x0a, 2, 0x7a, 0),
	} {
		_, err := s.child.WriteToUnix(d, unixgram(s.opts.Listen))
		wantNil(t, err)
	}
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
}

// A parent that was stopped leaves its requests unread when it dies.
func TestRelayOutlivesAParentThatIsStopped(t *testing.T) {
	s := newStand(t)
	defer s.Close()
	s.asks(StatsRequest)
	s.sees(StatsRequest)
	s.Commit()
	s.parent.Close()
	s.ParentGone()
	s.gets("newcomer", s.child, answerBegun)
	s.gets("newcomer", s.child, restOf(answerFor(StatsRequest, time.Time{})))
}

func TestRelayFindsOutByItselfThatTheParentIsGone(t *testing.T) {
	s := newStand(t)
	defer s.Close()
	s.parent.Close()
	s.asks(PassListenSocket)
	s.gets("newcomer", s.child, answerBegun)
	s.gets("newcomer", s.child, restOf(answerFor(PassListenSocket, time.Time{})))
	s.asks(PassListenSocket)
	s.gets("newcomer", s.child, answerFor(PassListenSocket, time.Time{}))
}

// A command must not be lost between a look at the commands and a wait for
// datagrams.
func TestRelayHearsCommandsWhileItIsIdleAndWhileItIsBusy(t *testing.T) {
	for range 200 {
		s := newStand(t)
		s.asks(DrainListeners)
		s.sees(DrainListeners)
		s.Commit()
		s.gets("parent", s.parent, request(DrainListeners))
		s.Close()
	}
}

func TestRelayLeavesNothing(t *testing.T) {
	s := newStand(t)
	listen := s.opts.Listen
	s.Close()
	if _, err := os.Lstat(listen); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s.Commit() // of one that has ended: nobody waits
	s.ParentGone()
	s.Commit()
}
