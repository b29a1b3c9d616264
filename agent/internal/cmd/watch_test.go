package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// script is a supervisor seen once a second: a serving epoch, or -2 for nobody.
type script []int

func (s *script) fetch(context.Context) (control.Status, error) {
	now := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	if now == -2 {
		return control.Status{}, errors.New("nobody")
	}
	age := float64(time.Now().UnixMilli()) // passes by itself
	return control.Status{Serving: now, Epochs: []control.EpochStatus{{Epoch: now, AgeSeconds: age, TimeLeftSeconds: age}}}, nil
}

func (s script) watch(out io.Writer) watcher {
	return watcher{fetch: s.fetch, out: out, write: func(w io.Writer, st control.Status, _ time.Time) error {
		_, err := fmt.Fprintln(w, st.Serving)
		return err
	}}
}

func TestWatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		script script
		how    func(watcher, context.Context) error
		want   string
		err    bool
	}{
		{"prints changes only", script{0, 0, 1, 1, -2, -2, 1}, watcher.changes, "0\n1\nnobody\n1\n", false},
		{"draws each second anew", script{0, 0, 1, -2}, watcher.redraw, home + "0\n" + home + "0\n" + home + "1\n" + strings.Repeat(home+"nobody\n", 7), false},
		{"nobody there at first", script{-2, 0}, watcher.changes, "", true},
		{"nobody there at first, on a terminal", script{-2, 0}, watcher.redraw, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 9500*time.Millisecond) // ctrl-C
				defer cancel()
				var out bytes.Buffer
				if err := c.how(c.script.watch(&out), ctx); (err != nil) != c.err {
					t.Error(err)
				}
				if out.String() != c.want {
					t.Errorf("%q", out.String())
				}
			})
		})
	}
}

// A reader that goes away (a pipe into head) ends the watch.
func TestWatchEndsWithItsReader(t *testing.T) {
	for _, how := range []func(watcher, context.Context) error{watcher.changes, watcher.redraw} {
		r, w := io.Pipe()
		r.Close()
		if err := how((script{0, 1}).watch(w), t.Context()); !errors.Is(err, io.ErrClosedPipe) {
			t.Error(err)
		}
	}
}
