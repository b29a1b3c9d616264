package hotrestart

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	tailLines = 200  // kept for reload --wait
	lineBytes = 4096 // of a line; the rest is cut
	tailQueue = 256  // lines that wait for our own output
)

// tail reads an epoch's stderr to its end, whatever happens to our own output:
// an Envoy whose output nobody reads stops serving (fact 22).
type tail struct {
	log   *slog.Logger
	epoch int
	ended chan struct{}

	mu   sync.Mutex // between the reader and whoever wants the lines
	ring []string
}

func newTail(log *slog.Logger, epoch int) *tail {
	return &tail{log: log.With("source", "envoy", "epoch", epoch), epoch: epoch, ended: make(chan struct{})}
}

// read copies lines to the log until the last writer has closed.
func (t *tail) read(r io.ReadCloser) {
	defer close(t.ended)
	defer r.Close()
	p := newPrinter(t.log)
	lines := bufio.NewReaderSize(r, lineBytes)
	for {
		line, _, err := lines.ReadLine() // a long line comes in parts
		if err != nil {
			break
		}
		t.keep(string(line))
		p.print(string(line))
	}
	p.close(time.Second)
}

func (t *tail) keep(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ring = append(t.ring, line); len(t.ring) > tailLines {
		t.ring = t.ring[1:]
	}
}

// lines are the newest ones, oldest first.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string(nil), t.ring...)
}

// settle waits until a dead epoch's last words have been read.
func (t *tail) settle() {
	select {
	case <-t.ended:
	case <-time.After(time.Second): // somebody inherited its stderr
	}
}

// printer hands lines to a log that may block: what doesn't fit into its queue
// is dropped and counted.
type printer struct {
	log     *slog.Logger
	queue   chan string
	printed chan struct{}
	dropped int
}

func newPrinter(log *slog.Logger) *printer {
	p := &printer{log: log, queue: make(chan string, tailQueue), printed: make(chan struct{})}
	go func() { // ends with close, once the log takes its last line
		defer close(p.printed)
		for line := range p.queue {
			p.log.Info(line)
		}
	}()
	return p
}

func (p *printer) print(line string) {
	if p.dropped > 0 {
		if len(p.queue) > tailQueue-2 {
			p.dropped++
			return
		}
		p.queue <- fmt.Sprintf("%d lines were dropped here: the supervisor's own output was blocked", p.dropped)
		p.dropped = 0
	}
	select {
	case p.queue <- line:
	default:
		p.dropped++
	}
}

// close waits a little for what is queued; a blocked log loses it.
func (p *printer) close(patience time.Duration) {
	close(p.queue)
	select {
	case <-p.printed:
	case <-time.After(patience):
	}
}
