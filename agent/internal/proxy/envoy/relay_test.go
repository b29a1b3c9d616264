package envoy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// stand is a relay between two sockets of the test.
type stand struct {
	*testing.T
	*Relay
	parent, child *net.UnixConn
	asParent      *Parent
	seen          chan Request
}

func newStand(t *testing.T) *stand {
	t.Helper()
	dir := shortDir(t)
	s := &stand{T: t, seen: make(chan Request, 100)}
	s.parent, s.child = bind(t, filepath.Join(dir, "parent")), bind(t, filepath.Join(dir, "child"))
	log := slog.New(slog.DiscardHandler)
	var err error
	s.asParent, err = OpenParent(filepath.Join(dir, "parent"), filepath.Join(dir, "answers"), log)
	wantNil(t, err)
	s.Relay, err = StartRelay(RelayOptions{
		Listen: filepath.Join(dir, "relay"), Child: filepath.Join(dir, "child"), Parent: s.asParent,
		FirstStart: time.Unix(1000, 0), Seen: func(r Request) { s.seen <- r }, Log: log,
	})
	wantNil(t, err)
	return s
}

func (s *stand) end() {
	s.Close()
	s.asParent.Close()
}

// exchange is a question that the parent answers.
func (s *stand) exchange(r Request) {
	s.Helper()
	s.asks(r)
	s.gets("parent", s.parent, request(r))
	s.replies(answerFor(r, time.Unix(7, 0)))
	s.gets("newcomer", s.child, answerFor(r, time.Unix(7, 0)))
}

// replies is the parent's answer.
func (s *stand) replies(answer []byte) {
	s.Helper()
	_, err := s.parent.WriteToUnix(answer, s.asParent.answers)
	wantNil(s.T, err)
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
	defer s.end()
	s.exchange(PassListenSocket)
	s.asks(DrainListeners)
	s.asks(Terminate)
	s.exchange(StatsRequest) // past what was withheld
	s.Commit()
	s.gets("parent after the commit", s.parent, request(DrainListeners))
	s.exchange(PassListenSocket)
	for _, r := range []Request{PassListenSocket, DrainListeners, Terminate, StatsRequest} {
		s.sees(r)
	}
	if len(s.seen) > 0 {
		t.Errorf("seen twice: %v", <-s.seen)
	}
}

// TestASecondNewcomerAtTheSameNameIsAnsweredNothing: of a supervisor that was
// stopped the newcomer may have died, and another pod's may sit in its seat. It
// would abort for an answer to what it hasn't asked.
func TestASecondNewcomerAtTheSameNameIsAnsweredNothing(t *testing.T) {
	s := newStand(t)
	defer s.end()
	s.exchange(PassListenSocket)
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
	s.child.Close()
	wantNil(t, os.Remove(s.opts.Child))
	second := bind(t, s.opts.Child)
	s.replies(answerFor(StatsRequest, time.Time{}))
	second.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := second.Read(make([]byte, largestDatagram)); err == nil {
		t.Errorf("the second one was answered, %d bytes", n)
	}
}

// The same where nothing was said to the first one yet: its pid tells.
func TestADeadChildIsNotMet(t *testing.T) {
	dir := shortDir(t)
	p := partner{name: unixgram(filepath.Join(dir, "child"))}
	defer p.close()
	bind(t, p.name.Name)
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, nil)
	wantNil(t, err)
	defer syscall.Wait4(pid, nil, 0, nil)
	for i := 0; !HasEnded(pid); i++ {
		if i > 1000 {
			t.Fatal("it doesn't end")
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.pid.Store(int64(pid))
	_, err = p.meet()
	wantError(t, err, "has ended")
	p.pid.Store(int64(os.Getpid()))
	_, err = p.meet()
	wantNil(t, err)
}

// Listening sockets come along; none stays with us.
func TestRelayHandsListeningSocketsOn(t *testing.T) {
	s := newStand(t)
	defer s.end()
	r, w, err := os.Pipe()
	wantNil(t, err)
	defer r.Close()
	s.asks(PassListenSocket)
	s.gets("parent", s.parent, request(PassListenSocket))
	_, _, err = s.parent.WriteMsgUnix(answerFor(PassListenSocket, time.Time{}), syscall.UnixRights(int(w.Fd())), s.asParent.answers)
	wantNil(t, err)
	wantNil(t, w.Close())
	s.child.SetReadDeadline(time.Now().Add(10 * time.Second))
	got, err := newReceiver(s.child).next()
	if err != nil || len(got.files) != 1 || !bytes.Equal(got.data, answerFor(PassListenSocket, time.Time{})) {
		t.Fatalf("%+v, %v", got, err)
	}
	passed := os.NewFile(uintptr(got.files[0]), "passed")
	_, err = passed.WriteString("x")
	wantNil(t, err)
	wantNil(t, passed.Close())
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	if all, err := io.ReadAll(r); string(all) != "x" || err != nil {
		t.Errorf("%q, %v: somebody else holds it open", all, err)
	}
}

// The request that the parent had not answered is answered (fact 28).
func TestRelayAnswersForAParentThatIsGone(t *testing.T) {
	for name, half := range map[string][][]byte{"unanswered": nil, "in the middle of an answer": long(10_000)[:2]} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t)
			defer s.end()
			s.asks(StatsRequest)
			s.gets("parent", s.parent, request(StatsRequest))
			for _, d := range half {
				s.replies(d)
			}
			s.parent.Close()
			s.asParent.Gone()
			s.gets("newcomer", s.child, answerFor(StatsRequest, time.Time{}))
			s.asks(ShutdownAdmin)
			s.gets("newcomer", s.child, answerFor(ShutdownAdmin, time.Unix(1000, 0)))
			s.Commit() // there is nobody to drain
			s.asks(DrainListeners)
			s.asks(PassListenSocket)
			s.gets("newcomer", s.child, answerFor(PassListenSocket, time.Time{}))
		})
	}
}

// Envoy adds a parent's gauges to its child's, and nobody else takes them back.
func TestRelayTakesBackTheGaugesOfAParentThatIsGone(t *testing.T) {
	s := newStand(t)
	defer s.end()
	var gauges []byte
	for i := range 1000 {
		gauges = append(gauges, entry(gaugesField, fmt.Sprintf("held.%d", i), numberField(mapValue, 3))...)
	}
	stats := frame(statsReply(gauges)...)
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
	for d := range slices.Chunk(stats, 4096) {
		s.replies(d)
	}
	for d := range slices.Chunk(stats, 4096) {
		s.gets("newcomer", s.child, d)
	}
	s.parent.Close()
	s.asParent.Gone()
	s.asks(StatsRequest)
	for d := range slices.Chunk(gaugesAtZero(stats[frameHeader:]), 4096) { // Envoy aborts at a larger one
		s.gets("newcomer", s.child, d)
	}
	s.asks(StatsRequest)
	s.gets("newcomer, once only", s.child, answerFor(StatsRequest, time.Time{}))
}

// A stopped parent must not stop the epoch that serves, whose main thread waits
// for its stats.
func TestRelayAnswersForAParentThatIsStopped(t *testing.T) {
	conn := bind(t, filepath.Join(shortDir(t), "relay"))
	s := service{
		Relay:    &Relay{conn: conn, child: partner{name: unixgram("/nowhere")}, opts: RelayOptions{Log: slog.New(slog.DiscardHandler)}},
		state:    relayState{waits: StatsRequest, asked: true},
		patience: statsPatience,
	}
	for range statsPatience - 1 {
		s.ticked()
	}
	if s.state.waits != StatsRequest {
		t.Fatal("too early")
	}
	if s.ticked(); s.state.waits != UnknownRequest || !s.state.asked {
		t.Errorf("%+v", s.state)
	}
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
		s.end()
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
		s.parent.WriteToUnix(answerFor(ParseRequest(buf[:got]), time.Time{}), s.asParent.answers)
	}
	s.parent.SetReadDeadline(time.Now().Add(3 * time.Millisecond))
	s.parent.Read(buf)
	s.parent.Close()
	s.asParent.Gone()
}

func (s *stand) takesAnswer(kind Request) {
	s.Helper()
	s.child.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, largestDatagram)
	n, err := s.child.Read(buf)
	if err != nil {
		s.Fatalf("the answer to %v: %v", kind, err)
	}
	if want := answerFor(kind, time.Time{}); !bytes.Equal(buf[frameHeader+2:frameHeader+3], want[frameHeader+2:frameHeader+3]) {
		s.Fatalf("asked for %v, answered % x", kind, buf[:n])
	}
}

// Envoy aborts for what is no request, and the parent is the one that serves.
func TestRelayPassesNothingThatIsNoRequest(t *testing.T) {
	s := newStand(t)
	defer s.end()
	for _, d := range [][]byte{
		{}, {0}, []byte("garbage"), bytes.Repeat([]byte{0xff}, 4096), bytes.Repeat([]byte{1}, largestDatagram),
		request(StatsRequest)[:9], append(request(StatsRequest), 0), frame(0x12, 2, 0x1a, 0), frame(0x0a, 2, 0x7a, 0),
	} {
		_, err := s.child.WriteToUnix(d, unixgram(s.opts.Listen))
		wantNil(t, err)
	}
	s.exchange(StatsRequest)
}

// A large answer waits for a newcomer that is stopped, and for nothing else.
func TestRelayWaitsForANewcomerThatIsStopped(t *testing.T) {
	s := newStand(t)
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
	parts := long(400_000) // more than a queue holds
	for _, d := range parts {
		s.replies(d)
	}
	for i, d := range parts {
		s.gets(fmt.Sprintf("newcomer, datagram %d", i), s.child, d)
	}
	s.asks(StatsRequest)
	s.gets("parent", s.parent, request(StatsRequest))
	for _, d := range parts {
		s.replies(d)
	}
	s.end() // in the middle of it
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
		s.end()
	}
}

func TestRelayLeavesNothing(t *testing.T) {
	s := newStand(t)
	listen := s.opts.Listen
	s.end()
	if _, err := os.Lstat(listen); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s.Commit() // of one that has ended: nobody waits
	s.Commit()
}
