package envoy

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// family is a Parent whose Envoy is a socket of the test.
type family struct {
	*testing.T
	*Parent
	envoy *net.UnixConn
}

func newFamily(t *testing.T) *family {
	t.Helper()
	dir := shortDir(t)
	f := &family{T: t, envoy: bind(t, filepath.Join(dir, "parent"))}
	var err error
	f.Parent, err = OpenParent(filepath.Join(dir, "parent"), filepath.Join(dir, "answers"), slog.New(slog.DiscardHandler))
	wantNil(t, err)
	return f
}

func (f *family) envoyName() string { return f.Parent.envoy.name.Name }

// reads is the Envoy reading its next request.
func (f *family) reads(want Request) {
	f.Helper()
	f.envoy.SetReadDeadline(time.Now().Add(10 * time.Second))
	buf := make([]byte, largestDatagram)
	n, err := f.envoy.Read(buf)
	if err != nil || ParseRequest(buf[:n]) != want {
		f.Fatalf("the parent reads % x, %v; want %v", buf[:n], err, want)
	}
}

// says is the Envoy sending datagrams of an answer.
func (f *family) says(datagrams ...[]byte) {
	f.Helper()
	for _, d := range datagrams {
		_, err := f.envoy.WriteToUnix(d, f.answers)
		wantNil(f.T, err)
	}
}

// takes wants an answer; nil: none will come.
func (f *family) takes(reply <-chan message, want []byte) {
	f.Helper()
	select {
	case m, ok := <-reply:
		if ok != (want != nil) || ok && !bytes.Equal(m.bytes(), want[frameHeader:]) {
			f.Errorf("%t, % x; want % x", ok, m.bytes(), want)
		}
		m.close()
	case <-time.After(10 * time.Second):
		f.Fatal("no answer")
	}
}

func never() <-chan struct{} { return nil }

// long is an answer of several datagrams, as Envoy cuts it.
func long(size int) (datagrams [][]byte) {
	all := append(binary.BigEndian.AppendUint64(nil, uint64(size)), bytes.Repeat([]byte{7}, size)...)
	for len(all) > 0 {
		n := min(4096, len(all))
		datagrams, all = append(datagrams, all[:n]), all[n:]
	}
	return datagrams
}

// TestASecondEnvoyAtTheSameNameIsToldNothing: of a supervisor that was stopped
// the Envoy may have died, and another pod's may sit in its seat.
func TestASecondEnvoyAtTheSameNameIsToldNothing(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	wantNil(t, f.Meet())
	f.envoy.Close()
	wantNil(t, os.Remove(f.envoyName()))
	second := bind(t, f.envoyName())
	wantError(t, f.AskToDrain(), "refused")
	wantError(t, f.say(drainRequest), "")
	f.takes(f.ask(statsRequest, never()), nil)
	second.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := second.Read(make([]byte, largestDatagram)); err == nil {
		t.Errorf("the second one was told something, %d bytes", n)
	}
}

// The first answer went to another supervisor, or is still to come: either way
// the second question gets its own.
func TestAnAnswerThatWentElsewhereIsNotWaitedFor(t *testing.T) {
	for name, late := range map[string]bool{"it went elsewhere": false, "it comes late": true} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(t)
			defer f.Close()
			unwanted := make(chan struct{})
			f.ask(request(ShutdownAdmin), unwanted)
			f.reads(ShutdownAdmin)
			close(unwanted)
			wanted := f.ask(request(PassListenSocket), never())
			f.Relinked()
			f.reads(StatsRequest)
			if late {
				f.says(answerFor(ShutdownAdmin, time.Time{}))
			}
			f.says(answerFor(StatsRequest, time.Time{}))
			f.reads(PassListenSocket)
			answer := answerFor(PassListenSocket, time.Time{})
			f.says(answer)
			f.takes(wanted, answer)
			f.Relinked()              // nothing is asked
			for len(f.relinked) > 0 { // nor was when it is heard of
				runtime.Gosched()
			}
			f.exchanges(StatsRequest)
		})
	}
}

// exchanges is a whole exchange.
func (f *family) exchanges(r Request) {
	f.Helper()
	reply := f.ask(request(r), never())
	f.reads(r)
	f.says(answerFor(r, time.Time{}))
	f.takes(reply, answerFor(r, time.Time{}))
}

func TestParentIsAskedOneThingAtATime(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	first, second := f.ask(request(StatsRequest), never()), make(chan (<-chan message), 1)
	second <- f.ask(request(PassListenSocket), never())
	f.reads(StatsRequest)
	wantNil(t, f.say(drainRequest)) // needs no answer, and waits for none
	f.reads(DrainListeners)
	parts := long(10_000)
	f.says(parts...)
	f.takes(first, bytes.Join(parts, nil))
	f.reads(PassListenSocket)
	f.says(answerFor(PassListenSocket, time.Time{}))
	f.takes(<-second, answerFor(PassListenSocket, time.Time{}))
}

// A newcomer that is dead: its question may still be answered, and that answer
// is nobody else's. What it asked and was not sent yet is not asked.
func TestParentKeepsAnswersApart(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	dead := make(chan struct{})
	f.ask(request(ShutdownAdmin), dead)
	f.ask(request(PassListenSocket), dead)
	f.reads(ShutdownAdmin)
	close(dead)
	reply := f.ask(request(StatsRequest), never())
	f.says(answerFor(ShutdownAdmin, time.Unix(7, 0)))
	f.reads(StatsRequest)
	f.says(answerFor(StatsRequest, time.Time{}))
	f.takes(reply, answerFor(StatsRequest, time.Time{}))
}

// What a parent sent before it died counts; half an answer doesn't.
func TestParentThatIsGone(t *testing.T) {
	for name, sent := range map[string][][]byte{
		"unread": nil, "half": long(10_000)[:2], "whole": long(10_000), "whole, more than a queue holds": long(200_000),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(t)
			defer f.Close()
			reply, next := f.ask(request(StatsRequest), never()), f.ask(request(PassListenSocket), never())
			f.reads(StatsRequest)
			f.says(sent...)
			f.envoy.Close()
			f.Gone()
			if all := bytes.Join(sent, nil); len(sent) > 2 {
				f.takes(reply, all)
			} else {
				f.takes(reply, nil)
			}
			f.takes(next, nil)
			f.takes(f.ask(request(StatsRequest), never()), nil)
		})
	}
}

func TestParentFindsOutByItselfThatItIsGone(t *testing.T) {
	f := newFamily(t)
	f.envoy.Close()
	f.takes(f.ask(request(StatsRequest), never()), nil)
	wantError(t, f.say(drainRequest), "refused")
	f.Close()
	f.takes(f.ask(request(StatsRequest), never()), nil) // nobody waits for ever
}

// A listening socket that stayed open in us would go on to listen.
func TestParentClosesTheSocketsThatNobodyTakes(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	r, w, err := os.Pipe()
	wantNil(t, err)
	dead := make(chan struct{})
	f.ask(request(PassListenSocket), dead)
	f.reads(PassListenSocket)
	close(dead)
	for range 3 { // one is asked for, two are not
		_, _, err = f.envoy.WriteMsgUnix(answerFor(PassListenSocket, time.Time{}), syscall.UnixRights(int(w.Fd())), f.answers)
		wantNil(t, err)
	}
	wantNil(t, w.Close())
	r.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := r.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("somebody holds it open: %v", err)
	}
	r.Close()
}

// Anything else than an answer is dropped, and counts as none.
func TestParentIgnoresWhatIsNoAnswer(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	reply := f.ask(request(StatsRequest), never())
	f.reads(StatsRequest)
	f.says(nil, []byte("short"), binary.BigEndian.AppendUint64(nil, 1<<60), answerFor(ShutdownAdmin, time.Unix(7, 0)), long(20)[0])
	f.takes(reply, long(20)[0])
	f.ask(request(PassListenSocket), never())
	f.reads(PassListenSocket) // and nothing was asked twice
}

func TestParentRespondsOrNot(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if f.Responds(late) {
		t.Error("answered before it was asked")
	}
	ctx, done := context.WithTimeout(t.Context(), 10*time.Second)
	defer done()
	go func() { // joined by the answer
		f.reads(StatsRequest)
		f.says(answerFor(StatsRequest, time.Time{}))
	}()
	if !f.Responds(ctx) {
		t.Error("it has answered")
	}
	f.envoy.Close()
	f.Gone()
	if f.Responds(ctx) {
		t.Error("it is dead")
	}
}

func TestParentLeavesNothing(t *testing.T) {
	f := newFamily(t)
	f.Close()
	f.Gone()
	if _, err := os.Lstat(f.answers.Name); !os.IsNotExist(err) {
		t.Error(err)
	}
	_, err := OpenParent("x", filepath.Join(t.TempDir(), "none", "answers"), slog.New(slog.DiscardHandler))
	wantError(t, err, "bind the name for a parent's answers")
}

// What another supervisor's dead newcomer has asked is answered late, and to us.
func TestAnAnswerToAnotherQuestionIsDropped(t *testing.T) {
	f := newFamily(t)
	defer f.Close()
	reply := f.ask(frame(0x0a, 2, 0x12, 0), nil)
	f.reads(ShutdownAdmin)
	now := time.Now()
	f.says(answerFor(StatsRequest, now), answerFor(PassListenSocket, now), answerFor(ShutdownAdmin, now))
	f.takes(reply, answerFor(ShutdownAdmin, now))
}
