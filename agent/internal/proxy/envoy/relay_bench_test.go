package envoy

import (
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkExchange is a request and its answer with a listening socket's worth
// of data: from socket to socket as Envoy does it by itself, and through the
// relay.
func BenchmarkExchange(b *testing.B) {
	dir := b.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	open := func(s string) *net.UnixConn {
		conn, err := net.ListenUnixgram("unixgram", unixgram(name(s)))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { conn.Close() })
		return conn
	}
	envoy, child := open("parent"), open("child")
	reply := make(chan string, 1)
	reply <- "child"
	go func() { // ends with its socket
		buf := make([]byte, largestDatagram)
		to := unixgram(name(<-reply))
		for {
			if _, err := envoy.Read(buf); err != nil {
				return
			}
			select {
			case s := <-reply:
				to = unixgram(name(s))
			default:
			}
			_, _ = envoy.WriteToUnix(answerFor(PassListenSocket, time.Time{}), to)
		}
	}()
	exchange := func(b *testing.B, to string) {
		buf := make([]byte, largestDatagram)
		for b.Loop() {
			if _, err := child.WriteToUnix(request(PassListenSocket), unixgram(name(to))); err != nil {
				b.Fatal(err)
			}
			if _, err := child.Read(buf); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("direct", func(b *testing.B) { exchange(b, "parent") })
	log := slog.New(slog.DiscardHandler)
	p, err := OpenParent(name("parent"), name("answers"), log)
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	r, err := StartRelay(RelayOptions{Listen: name("relay"), Child: name("child"), Parent: p, Seen: func(Request) {}, Log: log})
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	reply <- "answers"
	b.Run("relayed", func(b *testing.B) { exchange(b, "relay") })
}
