package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"aether.internal/test/demo/report"
)

// screen shows the story to whoever watches: on a terminal with one line that
// is always up to date, elsewhere with a line now and then.
type screen struct {
	out   io.Writer
	width func() int // of the terminal; nil: there is none
	shown time.Time  // when progress was shown last
	line  bool       // a progress line stands there
	// colour: whether the terminal's user wants any (no-color.org).
	colour bool
}

// newScreen looks whether out is a terminal.
func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	f, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" {
		return s
	}
	size := func() (int, error) {
		ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil {
			return 0, err
		}
		return int(ws.Col), nil
	}
	if _, err := size(); err == nil {
		s.colour = os.Getenv("NO_COLOR") == ""
		s.width = func() int { // asked each time: windows are resized
			if w, err := size(); err == nil && w > 0 {
				return w
			}
			return 80
		}
	}
	return s
}

// say prints a line of its own.
func (s *screen) say(format string, args ...any) {
	s.wipe()
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *screen) step(n, of int, say string) { s.say("%2d/%d  %s", n, of, say) }

func (s *screen) outcome(r report.Step) {
	mark := "ok"
	if r.Failed {
		mark = "NO"
	}
	s.say("       %s  %s (%s)", mark, r.Outcome, report.Short(r.Took))
}

func (s *screen) wipe() {
	if s.line {
		fmt.Fprint(s.out, "\r\x1b[2K")
		s.line = false
	}
}

// How often progress is shown: what an eye can follow, and what a log bears.
const (
	lively = 100 * time.Millisecond
	sedate = 5 * time.Second
)

// progress shows where the story is now.
func (s *screen) progress(now sight, since time.Duration) {
	every := sedate
	if s.width != nil {
		every = lively
	}
	if now.at.Sub(s.shown) < every || now.done+now.failed == 0 {
		return
	}
	s.shown = now.at
	text := progress(now, since)
	if s.width == nil {
		s.say("       %s", text)
		return
	}
	// One column short of the edge, where terminals wrap.
	text = clip("       "+text, s.width()-1)
	if s.colour {
		text = paint(text)
	}
	fmt.Fprint(s.out, "\r\x1b[2K"+text)
	s.line = true
}

// progress is "12.3 s  328/s  0 failed   [2 draining 9] [3 draining 41] [4 serving]",
// with the connections of what drains.
func progress(now sight, since time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5.1f s  %4.0f/s  %d failed  ", since.Seconds(), now.rate, now.failed)
	if now.status.Serving < 0 || len(now.status.Epochs) == 0 {
		b.WriteString("nobody serves")
	}
	for _, e := range now.status.Epochs {
		fmt.Fprintf(&b, " [%d %s", e.Epoch, e.State)
		if e.State == "draining" && e.Connections > 0 {
			fmt.Fprintf(&b, " %d", e.Connections)
		}
		b.WriteString("]")
	}
	return b.String()
}

var (
	laneWords = regexp.MustCompile(`\[\d+ (\w+)[^]]*\]?`)
	anyFailed = regexp.MustCompile(`\b[1-9]\d* failed`)
	colours   = map[string]string{"serving": "32", "starting": "33", "live": "33", "removing": "31"}
)

// paint colours the lanes, and failures if there are any.
func paint(text string) string {
	text = anyFailed.ReplaceAllString(text, "\x1b[1;31m$0\x1b[0m")
	return laneWords.ReplaceAllStringFunc(text, func(lane string) string {
		colour := cmp.Or(colours[laneWords.FindStringSubmatch(lane)[1]], "2")
		return "\x1b[" + colour + "m" + lane + "\x1b[0m"
	})
}

func clip(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(width, 0)])
}
