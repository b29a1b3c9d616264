package load

//lint:file-ignore SA1019 net/http hides GOAWAY and the streams' errors, which are what is counted here

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Headings, the JSON names of KindReport's counters.
const (
	refused  = "refused"
	reset    = "reset"
	cut      = "cut"
	timedOut = "timeout"
	wrong    = "wrong"
	other    = "other"
	strict   = "strict"
)

// wrongAnswer is an answer that came whole and isn't the right one.
type wrongAnswer struct{ what string }

func (w wrongAnswer) Error() string { return w.what }

// cutShort is an answer that ended in good order before its end.
type cutShort struct{ what string }

func (c cutShort) Error() string { return c.what }

// errRetried is a success that Plan.Strict doesn't take for one.
var errRetried = errors.New("succeeded only after a retry on another connection")

// heading says which counter a failure belongs to.
func heading(err error) string {
	var (
		bad     wrongAnswer
		short   cutShort
		stream  http2.StreamError
		goAway  http2.GoAwayError
		netErr  net.Error
		certErr *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, errRetried):
		return strict
	case errors.As(err, &bad), errors.As(err, &certErr):
		return wrong
	case errors.Is(err, syscall.ECONNREFUSED):
		return refused
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.As(err, &stream):
		return reset
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &netErr) && netErr.Timeout():
		return timedOut
	case errors.As(err, &short), errors.As(err, &goAway),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), notSent(err):
		return cut
	}
	return grpcHeading(err)
}

// grpcHeading reads the text: gRPC keeps neither the cause nor the HTTP/2
// error code of an Unavailable.
func grpcHeading(err error) string {
	s, ok := status.FromError(err)
	if !ok {
		return other
	}
	switch text := s.Message(); {
	case s.Code() == codes.DeadlineExceeded,
		strings.Contains(text, "deadline exceeded"), strings.Contains(text, "i/o timeout"):
		return timedOut
	case strings.Contains(text, "connection refused"):
		return refused
	case strings.Contains(text, "reset by peer"), strings.Contains(text, "broken pipe"),
		strings.Contains(text, "RST_STREAM"):
		return reset
	case strings.Contains(text, "EOF"), strings.Contains(text, "closing"), strings.Contains(text, "closed"):
		return cut
	}
	return wrong
}
