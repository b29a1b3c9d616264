package load_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/load/bootstrap"
	"aether.internal/test/load/internal/wire"
)

// misdeed is one way to misbehave, and the heading it belongs under.
type misdeed struct {
	name    string
	kind    string
	do      script
	heading string
}

var misdeeds = []misdeed{
	{"closes before the answer", load.New, func(c *wireConn, _ int) { c.request() }, "cut"},
	{"resets before the answer", load.New, func(c *wireConn, _ int) { c.request(); c.reset() }, "reset"},
	{"closes in the header", load.New, answer("HTTP/1.1 200 OK\r\nContent-"), "cut"},
	{"closes after the header", load.New, answer(announced("", wire.PieceSize)), "cut"},
	{"closes in the body", load.New, answer(announced("", wire.PieceSize) + "half"), "cut"},
	{"resets in the body", load.New, func(c *wireConn, _ int) {
		c.request()
		c.say(announced("", wire.PieceSize) + "half")
		c.reset()
	}, "reset"},
	{"ends the body early, in good order", load.New, answer(announced("", 4) + "half"), "cut"},
	{"sends another body", load.New, answer(announced("", wire.PieceSize) + string(wire.Piece(1, wire.PieceSize))), "wrong"},
	{"sends more than announced", load.New, answer(announced("", wire.PieceSize+1) + string(wire.Piece(0, wire.PieceSize+1))), "wrong"},
	{"answers 503", load.New, answer("HTTP/1.1 503 No\r\nContent-Length: 8\r\n\r\noverload"), "wrong"},
	{"announces nothing", load.New, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), "wrong"},
	{"isn't HTTP", load.New, answer("SSH-2.0-x\r\n\r\n"), "wrong"},
	{"says nothing", load.New, func(c *wireConn, _ int) { c.stall() }, "timeout"},
	{"stops in the body", load.New, func(c *wireConn, _ int) {
		c.request()
		c.say(announced("", wire.PieceSize) + "half")
		c.stall()
	}, "timeout"},

	{"closes a new connection", load.KeepAlive, func(c *wireConn, _ int) { c.request() }, "cut"},
	{"never sends the answer", load.KeepAlive, func(c *wireConn, _ int) { c.stall() }, "timeout"},

	{"cuts the stream in a chunk", load.Stream, answer(chunked() + "200\r\nhalf"), "cut"},
	{"ends the stream early", load.Stream, answer(chunked() + "4\r\nhalf\r\n0\r\n\r\n"), "cut"},
	{"stops the stream", load.Stream, func(c *wireConn, _ int) {
		c.request()
		c.say(chunked() + "4\r\nhalf\r\n")
		c.stall()
	}, "timeout"},

	{"loses part of the upload", load.Upload, answer(hello("X-Received: 4:0\r\n")), "wrong"},
	{"closes after the upload", load.Upload, func(c *wireConn, _ int) { c.request() }, "cut"},
	{"resets the upload", load.Upload, func(c *wireConn, _ int) { _, _ = c.in.Peek(1); c.reset() }, "reset"},

	{"echoes too little", load.TCP, func(c *wireConn, _ int) {
		all, _ := io.ReadAll(c.in)
		_, _ = c.Write(all[:len(all)/2])
	}, "cut"},
	{"echoes something else", load.TCP, func(c *wireConn, _ int) {
		all, _ := io.ReadAll(c.in)
		all[0]++
		_, _ = c.Write(all)
	}, "wrong"},
	{"echoes too much", load.TCP, func(c *wireConn, _ int) {
		all, _ := io.ReadAll(c.in)
		_, _ = c.Write(append(all, 'x'))
	}, "wrong"},
	{"doesn't half-close", load.TCP, func(c *wireConn, _ int) { _, _ = io.Copy(c.Conn, c.in); c.stall() }, "timeout"},
	{"resets", load.TCP, func(c *wireConn, _ int) { _, _ = io.ReadAll(c.in); c.reset() }, "reset"},

	{"closes the held connection", load.TCPHold, func(c *wireConn, _ int) { _, _ = io.CopyN(c.Conn, c.in, 64) }, "cut"},
	{"resets the held connection", load.TCPHold, func(c *wireConn, _ int) {
		_, _ = io.CopyN(c.Conn, c.in, 64)
		_, _ = c.in.Peek(1)
		c.reset()
	}, "reset"},
	{"changes a message", load.TCPHold, func(c *wireConn, _ int) {
		_, _ = io.CopyN(c.Conn, c.in, 64)
		c.say(string(make([]byte, 64)))
		c.stall()
	}, "wrong"},
}

// answer reads a request and says text.
func answer(text string) script {
	return func(c *wireConn, _ int) { c.request(); c.say(text) }
}

// chunked is the header of a stream's answer.
func chunked() string {
	return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Bytes: 1000\r\nX-Crc32c: 1\r\n\r\n"
}

func TestEachMisdeedIsCountedUnderItsHeading(t *testing.T) {
	t.Parallel()
	config, certificate := identity(t)
	for _, m := range misdeeds {
		t.Run(m.kind+" "+m.name, func(t *testing.T) {
			t.Parallel()
			report := suffer(t, m, targetOf(m.kind, false, rogue(t, nil, m.do)))
			onlyFailures(t, report, m.heading)
		})
		t.Run(m.kind+" with TLS "+m.name, func(t *testing.T) {
			t.Parallel()
			target := targetOf(m.kind, true, rogue(t, config, m.do))
			target.RootCAs = certificate.Pool
			onlyFailures(t, suffer(t, m, target), m.heading)
		})
	}
}

func TestARefusedConnection(t *testing.T) {
	t.Parallel()
	ports, err := bootstrap.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range everyKind {
		for _, tls := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s tls=%t", kind, tls), func(t *testing.T) {
				t.Parallel()
				target := targetOf(kind, tls, fmt.Sprintf("127.0.0.1:%d", ports[0]))
				onlyFailures(t, suffer(t, misdeed{kind: kind}, target), "refused")
			})
		}
	}
}

func TestABadHandshake(t *testing.T) {
	t.Parallel()
	config, certificate := identity(t)
	for _, kind := range []string{load.New, load.KeepAlive, load.H2, load.TCP} {
		t.Run(kind+" cut", func(t *testing.T) {
			t.Parallel()
			target := targetOf(kind, true, rogue(t, nil, func(c *wireConn, _ int) { _, _ = c.in.Peek(1); _, _ = c.in.Discard(c.in.Buffered()) }))
			onlyFailures(t, suffer(t, misdeed{kind: kind}, target), "cut")
		})
		t.Run(kind+" without TLS", func(t *testing.T) {
			t.Parallel()
			target := targetOf(kind, true, rogue(t, nil, func(c *wireConn, _ int) { _, _ = c.in.Peek(1); c.say("HTTP/1.1 400\r\n\r\n"); c.stall() }))
			target.RootCAs = certificate.Pool
			onlyFailures(t, suffer(t, misdeed{kind: kind}, target), "other")
		})
		t.Run(kind+" with a stranger's certificate", func(t *testing.T) {
			t.Parallel()
			target := targetOf(kind, true, rogue(t, config, func(c *wireConn, _ int) { _, _ = c.in.Peek(1) }))
			onlyFailures(t, suffer(t, misdeed{kind: kind}, target), "wrong")
		})
	}
}

// suffer runs the misdeed's kind until it has failed three times.
func suffer(t *testing.T, m misdeed, target load.Target) load.Report {
	t.Helper()
	return sufferPlan(t, m, target, load.KindPlan{Concurrency: 3})
}

func sufferPlan(t *testing.T, m misdeed, target load.Target, k load.KindPlan) load.Report {
	t.Helper()
	k.Kind, k.TLS = m.kind, target.HTTPS+target.TLS != ""
	timeout := 20 * time.Second // never by accident, on a busy machine
	if m.heading == "timeout" {
		timeout = 100 * time.Millisecond
	}
	run := begin(t, load.Plan{
		Target: target, Timeout: timeout, StreamDuration: 100 * time.Millisecond,
		Kinds: []load.KindPlan{k},
	})
	until(t, run, "three failures", func(r load.Report) bool { return r.Failures() >= 3 })
	return run.Stop()
}

// onlyFailures wants failures under one heading and under no other.
func onlyFailures(t *testing.T, r load.Report, heading string) {
	t.Helper()
	k := r.Kinds[0]
	under := map[string]int{
		"refused": k.Refused, "reset": k.Reset, "cut": k.Cut, "timeout": k.Timeout,
		"wrong": k.Wrong, "other": k.Other, "strict": k.Strict,
	}
	if k.Failed == 0 || under[heading] != k.Failed || k.OK != 0 || k.Started != k.Failed {
		t.Errorf("of %d operations %d failed, want all under %q: %v", k.Started, k.Failed, heading, under)
		t.Log("\n" + r.Table())
	}
}
