package envoy

import (
	"fmt"
	"net"
	"syscall"
)

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

// Sitter tells who is at a hot-restart socket from who was there before: a name
// that is bound again is another file. The zero value is nobody.
type Sitter struct {
	Inode uint64
	Bound syscall.Timespec
}

// SitterAt is whoever is alive at a hot-restart socket.
func SitterAt(socket string) Sitter {
	var stat syscall.Stat_t
	if !Alive(socket) || syscall.Stat(socket, &stat) != nil {
		return Sitter{}
	}
	return Sitter{stat.Ino, stat.Mtim}
}

// AbstractSocket is the name Envoy uses without --socket-path: NUL-padded to
// the whole of sun_path (fact 1).
func AbstractSocket(baseID uint32, role string, epoch int) string {
	name := fmt.Sprintf("@envoy_domain_socket_%s_%d", role, uint64(baseID)*10+uint64(epoch%Seats))
	padded := make([]byte, 108)
	copy(padded, name)
	return string(padded)
}
