package cmd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// gate is an output that nobody reads until it is opened.
type gate struct {
	bytes.Buffer
	open chan struct{}
}

func (g *gate) Write(p []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(p)
}

func TestABlockedLogStopsNobodyAndLossesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gate{open: make(chan struct{})}
		s := newSink(out, slog.New(slog.NewJSONHandler(out, nil)))
		const all = 3 * sinkLines
		for i := range all {
			fmt.Fprintf(s, "line %d\n", i)
		}
		close(out.open)
		s.close()
		text := out.String()
		printed := strings.Count(text, "line ")
		if printed < sinkLines || !strings.Contains(text, fmt.Sprintf(`"dropped":%d`, all-printed)) {
			t.Errorf("%d of %d lines, and the end is %.200s", printed, all, text[max(0, len(text)-200):])
		}
	})
}

func TestABlockedLogDoesNotKeepTheProgramFromEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &gate{open: make(chan struct{})}
		s := newSink(out, slog.New(slog.NewJSONHandler(out, nil)))
		fmt.Fprintln(s, "never read")
		start := time.Now()
		s.close()
		if took := time.Since(start); took != lastWords {
			t.Errorf("the end took %v", took)
		}
		close(out.open)
	})
}

func TestAFlushWaitsForWhatIsQueued(t *testing.T) {
	var out bytes.Buffer
	s := newSink(&out, slog.New(slog.DiscardHandler))
	for range 100 {
		_, _ = s.Write([]byte("line\n"))
	}
	s.flush()
	if n := strings.Count(out.String(), "line"); n != 100 {
		t.Errorf("%d lines are out", n)
	}
	s.close()
}
