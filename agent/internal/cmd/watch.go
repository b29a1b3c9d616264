package cmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/control"
)

// watcher shows a status again and again until its context ends, which is no
// error. A first status that can't be had is one; later the supervisor may come
// and go.
type watcher struct {
	fetch func(context.Context) (control.Status, error)
	write func(io.Writer, control.Status, time.Time) error
	out   io.Writer
}

// home moves a terminal's cursor home and clears what is below it: less
// flicker than to clear the whole screen first.
const home = "\x1b[H\x1b[J"

// redraw shows each second's status in place of the last one.
func (w watcher) redraw(ctx context.Context) error {
	return w.each(ctx, func(st control.Status, err error) error {
		var screen bytes.Buffer
		screen.WriteString(home)
		if err != nil {
			fmt.Fprintln(&screen, err)
		} else if err := w.write(&screen, st, time.Now()); err != nil {
			return err
		}
		_, err = w.out.Write(screen.Bytes())
		return err
	})
}

// changes prints a status when it differs from the last in more than the time.
func (w watcher) changes(ctx context.Context) error {
	var last any
	return w.each(ctx, func(st control.Status, err error) error {
		var now any = timeless(st)
		if err != nil {
			now = err.Error()
		}
		if reflect.DeepEqual(now, last) {
			return nil
		}
		last = now
		if err != nil {
			_, err = fmt.Fprintln(w.out, err)
			return err
		}
		return w.write(w.out, st, time.Now())
	})
}

// timeless is st without what passes by itself.
func timeless(st control.Status) control.Status {
	st.Epochs = slices.Clone(st.Epochs)
	for i := range st.Epochs {
		st.Epochs[i].AgeSeconds, st.Epochs[i].TimeLeftSeconds = 0, 0
	}
	return st
}

func (w watcher) each(ctx context.Context, show func(control.Status, error) error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		st, err := w.fetch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && first {
			return err
		}
		if err := show(st, err); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
