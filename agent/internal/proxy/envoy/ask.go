package envoy

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"time"
)

// AskToDrain sends drain_listeners to an Envoy's own parent socket: its
// keep-alives are told to close and new connections are refused at once (fact
// 6). For an Envoy without admin that is to be stopped.
func AskToDrain(parentSocket string) error {
	conn, err := net.DialUnix("unixgram", nil, unixgram(parentSocket))
	if err != nil {
		return fmt.Errorf("hot-restart socket: %w", err)
	}
	defer conn.Close()
	conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := conn.Write(drainRequest); err != nil {
		return fmt.Errorf("hot-restart socket: %w", err)
	}
	return nil
}

// Alive tells whether an Envoy owns a hot-restart socket: connect() finds out
// in microseconds and without a word to the owner (fact 1). Only `child`
// sockets are never relayed.
func Alive(socket string) bool {
	conn, err := net.DialUnix("unixgram", nil, unixgram(socket))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// AbstractSocket is the name Envoy uses without --socket-path: NUL-padded to
// the whole of sun_path (fact 1).
func AbstractSocket(baseID uint32, role string, epoch int) string {
	name := fmt.Sprintf("@envoy_domain_socket_%s_%d", role, uint64(baseID)*10+uint64(epoch%Seats))
	padded := make([]byte, 108)
	copy(padded, name)
	return string(padded)
}

// statsRequest is what a child sends at each of its stats flushes.
var statsRequest = frame(0x0a, 2, 0x1a, 0)

// AskStats sends a stats request to an Envoy's own parent socket and reads its
// whole answer, which Envoy sends to its child's name: replyName, so there must
// be no child. nil means that its main thread lives; patience is what each
// datagram may take. After an error Envoy must be ended: an answer that it sends
// later finds nobody, and it aborts (fact 4).
func AskStats(ctx context.Context, parentSocket, replyName string, patience time.Duration) error {
	conn, err := net.ListenUnixgram("unixgram", unixgram(replyName))
	if err != nil {
		return fmt.Errorf("hot-restart socket: %w", err)
	}
	defer os.Remove(replyName)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(patience))
	if _, err := conn.WriteToUnix(statsRequest, unixgram(parentSocket)); err != nil {
		return fmt.Errorf("hot-restart socket: %w", err)
	}
	return readFrame(conn, patience)
}

// readFrame reads one message, whatever it says, in as many datagrams as it
// comes in.
func readFrame(conn *net.UnixConn, patience time.Duration) error {
	buf := make([]byte, 1<<16)
	for first, left := true, uint64(1); left > 0; first = false {
		conn.SetDeadline(time.Now().Add(patience))
		n, err := conn.Read(buf)
		if err != nil {
			return fmt.Errorf("hot-restart socket: no answer: %w", err)
		}
		if first {
			if n < frameHeader {
				return fmt.Errorf("hot-restart socket: an answer of %d bytes", n)
			}
			left = frameHeader + binary.BigEndian.Uint64(buf)
		}
		left -= min(uint64(n), left)
	}
	return nil
}
