package envoy

import (
	"fmt"
	"net"
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
