// Package wire is what the load generator and its upstream server agree on:
// paths, headers, the bytes of a body, and the gRPC method.
package wire

import (
	"hash/crc32"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Paths served by the upstream server.
const (
	HelloPath  = "/hello"  // a short body at once
	StreamPath = "/stream" // ?ms=N: a body that takes N milliseconds
	EchoPath   = "/echo"   // reads the request's body and says what it got
)

// Headers. Epoch is set by the Envoy that answers; the rest by the upstream.
const (
	EpochHeader    = "X-Epoch"
	BytesHeader    = "X-Bytes"    // length of the whole body, known before its first byte
	ChecksumHeader = "X-Crc32c"   // of the whole body, hexadecimal
	ReceivedHeader = "X-Received" // the request's body as the upstream saw it: Sum.String()
)

// Beat is the pause between two pieces of a stream, in either direction.
const Beat = 100 * time.Millisecond

// PieceSize is the length of one piece of a stream, in bytes.
const PieceSize = 512

// block is random so that no compression and no lucky overwrite hides a
// mistake, and seeded so that both sides know it without sending it.
var block = func() []byte {
	b := make([]byte, 64<<10)
	source := rand.NewChaCha8([32]byte{'a', 'e', 't', 'h', 'e', 'r'})
	_, _ = source.Read(b) // never fails
	return b
}()

// Piece is the i-th piece of a stream: size bytes, the same on both sides.
// The result is shared: read only. At most 32 KiB.
func Piece(i, size int) []byte {
	at := (i * 977) % (len(block) - size)
	return block[at : at+size]
}

// Pieces is how many pieces a stream of length d has: one at once, then one
// a Beat, the last at d.
func Pieces(d time.Duration) int { return int(d/Beat) + 1 }

// Sum is a running length and CRC-32C of a body. It is an io.Writer.
type Sum struct {
	Bytes int64
	CRC   uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write adds p.
func (s *Sum) Write(p []byte) (int, error) {
	s.Bytes += int64(len(p))
	s.CRC = crc32.Update(s.CRC, castagnoli, p)
	return len(p), nil
}

// String is the form used in ReceivedHeader: "bytes:crc".
func (s *Sum) String() string {
	return strconv.FormatInt(s.Bytes, 10) + ":" + strconv.FormatUint(uint64(s.CRC), 16)
}

// Announce writes s into the headers of a response.
func (s *Sum) Announce(h http.Header) {
	h.Set(BytesHeader, strconv.FormatInt(s.Bytes, 10))
	h.Set(ChecksumHeader, strconv.FormatUint(uint64(s.CRC), 16))
}

// Announced reads what Announce wrote; false if it isn't there or is garbage.
func Announced(h http.Header) (Sum, bool) {
	n, err := strconv.ParseInt(h.Get(BytesHeader), 10, 64)
	if err != nil {
		return Sum{}, false
	}
	crc, err := strconv.ParseUint(h.Get(ChecksumHeader), 16, 32)
	return Sum{Bytes: n, CRC: uint32(crc)}, err == nil
}

// StreamSum is the sum of the first n pieces.
func StreamSum(n int) Sum {
	var s Sum
	for i := range n {
		_, _ = s.Write(Piece(i, PieceSize))
	}
	return s
}
