package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestOutputKeepsTheEndOfEachStream(t *testing.T) {
	out, errs, st, err := Output(t.Context(), sh("echo out; echo err >&2; exit 3"), 100)
	if err != nil || st.Code != 3 || string(out) != "out\n" || string(errs) != "err\n" {
		t.Errorf("%q %q %v %v", out, errs, st, err)
	}
	out, _, st, err = Output(t.Context(), sh("i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done"), 30)
	if err != nil || st.Code != 0 || len(out) != 30 || !strings.HasSuffix(string(out), "line 19998\nline 19999\n") {
		t.Errorf("%q %v %v", out, st, err)
	}
}

func TestOutputOfAChildThatIsKilled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	out, _, _, err := Output(ctx, sh("echo before; exec sleep 60"), 100)
	if !errors.Is(err, context.DeadlineExceeded) || string(out) != "before\n" {
		t.Errorf("%q %v", out, err)
	}
}

func TestOutputDoesNotWaitForGrandchildren(t *testing.T) {
	began := time.Now()
	out, _, st, err := Output(t.Context(), sh("sleep 20 & echo done"), 100)
	if err != nil || st.Code != 0 || string(out) != "done\n" || time.Since(began) > 10*time.Second {
		t.Errorf("%q %v %v after %v", out, st, err, time.Since(began))
	}
}

func TestOutputErrorOfStart(t *testing.T) {
	if _, _, _, err := Output(t.Context(), Spec{Path: "/nonexistent"}, 1); err == nil {
		t.Error("no error")
	}
}
