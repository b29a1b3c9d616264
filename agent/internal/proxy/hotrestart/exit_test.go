package hotrestart

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestExitCode(t *testing.T) {
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"stopped as asked", nil, 0},
		{"nobody foresaw it", errors.New("x"), 1},
		{"named", Exitf(ExitBootstrap, "bootstrap /x: %w", fs.ErrNotExist), 3},
		{"named further down", fmt.Errorf("start: %w", Exitf(ExitTaken, "seat 0 is held")), 6},
		{"the outer one wins", Exitf(ExitFirstEpoch, "epoch 0: %w", Exitf(ExitBinary, "exec")), 5},
		{"ended by a signal", Exitf(SignalCode(syscall.SIGSEGV), "epoch 3: SIGSEGV"), 139},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", c.name, got, c.want)
		}
	}
}

func TestExitErrorKeepsSentenceAndCause(t *testing.T) {
	err := Exitf(ExitBootstrap, "bootstrap /x: %w", fs.ErrNotExist)
	if err.Error() != "bootstrap /x: file does not exist" || !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
