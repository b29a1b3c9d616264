package envoy

import (
	"encoding/binary"
	"time"
)

// Request is what a newcomer asks of its parent over the hot-restart socket.
// The wire format is that of hot-restart version 11.104: a datagram of an
// 8-byte big-endian length and a protobuf message (fact 28).
type Request int

// The requests, by the field number Envoy gives them.
const (
	UnknownRequest   Request = 0
	PassListenSocket Request = 1
	ShutdownAdmin    Request = 2
	StatsRequest     Request = 3
	DrainListeners   Request = 4
	Terminate        Request = 5
)

var requestNames = [...]string{"unknown", "pass_listen_socket", "shutdown_admin", "stats", "drain_listeners", "terminate"}

func (r Request) String() string { return requestNames[r] }

const frameHeader = 8

// ParseRequest tells which request a datagram is. Anything it doesn't know,
// too short or too long included, is UnknownRequest.
func ParseRequest(datagram []byte) Request {
	const requestField = 0x0a // HotRestartMessage.request, length-delimited
	if len(datagram) < frameHeader+3 || datagram[frameHeader] != requestField {
		return UnknownRequest
	}
	body := datagram[frameHeader+1:]
	size, n := binary.Uvarint(body)
	if n <= 0 || size == 0 || len(body) <= n {
		return UnknownRequest
	}
	if key := body[n]; key&7 == 2 && key>>3 >= 1 && key>>3 <= byte(Terminate) {
		return Request(key >> 3)
	}
	return UnknownRequest
}

// sound tells whether a datagram is one whole request of a kind that we know:
// each length is that of what follows.
func sound(datagram []byte) bool {
	if ParseRequest(datagram) == UnknownRequest || binary.BigEndian.Uint64(datagram) != uint64(len(datagram)-frameHeader) {
		return false
	}
	kind, ok := field(datagram[frameHeader:])
	if !ok {
		return false
	}
	_, ok = field(kind)
	return ok
}

// field is the content of a message that is one length-delimited field.
func field(message []byte) ([]byte, bool) {
	if len(message) < 2 {
		return nil, false
	}
	size, n := binary.Uvarint(message[1:])
	if n <= 0 || size != uint64(len(message)-1-n) {
		return nil, false
	}
	return message[1+n:], true
}

// frame puts the length in front of a message.
func frame(message ...byte) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(len(message))), message...)
}

// drainRequest is what a newcomer sends when it is LIVE.
var drainRequest = frame(0x0a, 2, 0x22, 0)

// statsRequest is what a child sends at each of its stats flushes.
var statsRequest = frame(0x0a, 2, 0x1a, 0)

// answerFor is the answer of a parent that is gone: no stats, no socket. nil
// means that the request expects none. A shutdown_admin answer is never empty:
// that would mean "no reuse_port", and the newcomer would take one socket for
// all workers of a listener (fact 28).
func answerFor(r Request, firstStart time.Time) []byte {
	switch r {
	case StatsRequest:
		return frame(0x12, 2, 0x1a, 0)
	case PassListenSocket: // fd = -1
		return frame(0x12, 13, 0x0a, 11, 0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1)
	case ShutdownAdmin: // original_start_time_unix_seconds, enable_reuse_port_default
		m := append([]byte{0x08}, binary.AppendUvarint(nil, uint64(max(firstStart.Unix(), 0)))...)
		m = append(m, 0x10, 1)
		return frame(append([]byte{0x12, byte(len(m) + 2), 0x12, byte(len(m))}, m...)...)
	}
	return nil
}
