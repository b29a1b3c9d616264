package load

//lint:file-ignore SA1019 net/http hides GOAWAY and the streams' errors, which are what is counted here

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestHeadings(t *testing.T) {
	network := func(err error) error {
		return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
	}
	unavailable := func(text string) error { return status.Error(codes.Unavailable, text) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{network(syscall.ECONNREFUSED), refused},
		{network(syscall.ECONNRESET), reset},
		{network(syscall.EPIPE), reset},
		{network(syscall.EHOSTUNREACH), other},
		{io.EOF, cut},
		{io.ErrUnexpectedEOF, cut},
		{cutShort{"x"}, cut},
		{wrongAnswer{"x"}, wrong},
		{errRetried, strict},
		{context.DeadlineExceeded, timedOut},
		{os.ErrDeadlineExceeded, timedOut},
		{http2.StreamError{StreamID: 1, Code: http2.ErrCodeRefusedStream}, reset},
		{http2.GoAwayError{}, cut},
		{errors.New("http2: client conn is closed"), cut},
		{errors.New("strange"), other},
		{unavailable("connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:1: connect: connection refused\""), refused},
		{unavailable("error reading from server: read tcp: connection reset by peer"), reset},
		{unavailable("error reading from server: EOF"), cut},
		{unavailable("closing transport due to: connection error: desc = \"error reading from server: EOF\""), cut},
		{unavailable("connection error: desc = \"transport: authentication handshake failed: context deadline exceeded\""), timedOut},
		{unavailable("connection error: desc = \"transport: Error while dialing: dial tcp 127.0.0.1:1: i/o timeout\""), timedOut},
		{unavailable("no healthy upstream"), wrong},
		{status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR"), reset},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), timedOut},
		{status.Error(codes.Unimplemented, "unknown method"), wrong},
	} {
		if got := heading(fmt.Errorf("step: %w", c.err)); got != c.want {
			t.Errorf("%q (%T) is under %q, want %q", c.err, c.err, got, c.want)
		}
	}
}

// Every heading has a counter of its own.
func TestCounters(t *testing.T) {
	var k KindReport
	for i, name := range []string{refused, reset, cut, timedOut, wrong, other, strict} {
		*k.counter(name) += i + 1
	}
	want := KindReport{Refused: 1, Reset: 2, Cut: 3, Timeout: 4, Wrong: 5, Other: 6, Strict: 7}
	if fmt.Sprint(k) != fmt.Sprint(want) {
		t.Errorf("got %+v", k)
	}
}
