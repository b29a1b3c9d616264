package cmd

import (
	"io"
	"log/slog"
	"time"
)

// sink writes lines to an output that may block, on a goroutine of its own:
// a supervisor whose log nobody reads must go on to supervise. Lines that find
// no room are dropped and counted.
type sink struct {
	lines   chan []byte
	flushes chan chan struct{}
	ending  chan struct{}
	written chan struct{}
	dropped chan int // holds the count, and is the lock on it
	log     *slog.Logger
}

const (
	sinkLines = 1024
	lastWords = time.Second // what the rest may take at the end
)

// newSink writes to w; log does so as well, at once and in the form of the lines.
func newSink(w io.Writer, log *slog.Logger) *sink {
	s := &sink{log: log, lines: make(chan []byte, sinkLines), flushes: make(chan chan struct{}, 1), ending: make(chan struct{}), written: make(chan struct{}), dropped: make(chan int, 1)}
	s.dropped <- 0
	go s.write(w) // ends with close, once the output takes the last line
	return s
}

func (s *sink) write(w io.Writer) {
	defer close(s.written)
	put := func(line []byte) {
		_, _ = w.Write(line)
		s.confess()
	}
	for {
		select {
		case line := <-s.lines:
			put(line)
		case done := <-s.flushes:
			for len(s.lines) > 0 {
				put(<-s.lines)
			}
			close(done)
		case <-s.ending:
			for len(s.lines) > 0 {
				put(<-s.lines)
			}
			return
		}
	}
}

// Write never blocks and never fails.
func (s *sink) Write(line []byte) (int, error) {
	select {
	case s.lines <- append([]byte(nil), line...):
	default:
		s.dropped <- 1 + <-s.dropped
	}
	return len(line), nil
}

// confess says how many lines were lost, once the output takes some again.
func (s *sink) confess() {
	n := <-s.dropped
	s.dropped <- 0
	if n > 0 {
		s.log.Warn("lines of the log were dropped: our output was blocked", "dropped", n)
	}
}

// flush waits a moment for what is queued to be written. Nobody else may flush.
func (s *sink) flush() {
	t := time.NewTimer(lastWords)
	defer t.Stop()
	done := make(chan struct{})
	select {
	case s.flushes <- done:
	case <-t.C:
		return
	}
	select {
	case <-done:
	case <-t.C:
	}
}

// close gives what is queued a moment. What is written later is lost.
func (s *sink) close() {
	close(s.ending)
	t := time.NewTimer(lastWords)
	defer t.Stop()
	select {
	case <-s.written:
	case <-t.C:
	}
}
