package hotrestart

import (
	"errors"
	"fmt"
	"syscall"
)

// Exit codes of the supervisor. docs/reference.md has them as a table that is
// rendered from agent/internal/cmd/exitcodes.go; a test compares the two.
const (
	ExitOK         = 0   // stopped as asked
	ExitUnexpected = 1   // an error nobody foresaw
	ExitUsage      = 2   // wrong flags, or values that exclude each other
	ExitBootstrap  = 3   // first start: the bootstrap is missing, unreadable or refused
	ExitBinary     = 4   // the Envoy binary can't be run
	ExitFirstEpoch = 5   // the first epoch exited, or was not verified by the deadline
	ExitTaken      = 6   // base-id, seat or socket belong to somebody else
	ExitNewest     = 10  // the newest epoch exited by itself
	ExitSignal     = 128 // plus the number of the signal that ended the newest epoch
)

// ExitError is an error that decides the exit code of the program.
type ExitError struct {
	Code int // one of the constants above; ExitSignal with the signal added
	Err  error
}

func (e *ExitError) Error() string { return e.Err.Error() }
func (e *ExitError) Unwrap() error { return e.Err }

// Exitf makes an ExitError; its format is fmt.Errorf's.
func Exitf(code int, format string, args ...any) error {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// SignalCode is the exit code for a newest epoch that sig ended, as a shell
// would report it.
func SignalCode(sig syscall.Signal) int { return ExitSignal + int(sig) }

// ExitCode is the exit code that err asks for: ExitOK for nil, ExitUnexpected
// for an error that names none.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	default:
		return ExitUnexpected
	}
}
