package hotrestart

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"aether.internal/agent/internal/proxy/gate"
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

	mu      sync.Mutex // between the reader and whoever wants the lines
	ring    []string
	pipe    *os.File // nil before the fork
	gate    *gate.Gate
	printer *printer
}

func newTail(log *slog.Logger, epoch int) *tail {
	return &tail{log: log.With("source", "envoy", "epoch", epoch), epoch: epoch, ended: make(chan struct{})}
}

// read copies lines to the log until the last writer has closed.
func (t *tail) read(r io.ReadCloser) {
	defer close(t.ended)
	defer r.Close()
	p := newPrinter(t.log)
	var g *gate.Gate // of what is no file: always open
	if pipe, ok := r.(*os.File); ok {
		g = gate.New(pipe)
		t.mu.Lock()
		t.pipe, t.gate, t.printer = pipe, g, p
		t.mu.Unlock()
	}
	lines := bufio.NewReaderSize(r, lineBytes)
	for {
		line, _, err := lines.ReadLine() // a long line comes in parts
		if g.Wait(err) {
			continue
		}
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

// freeze stops reading, until thaw, and gives the pipe's descriptor; -1 when it
// has ended. What was read is in the log, or a blocked log has lost it.
func (t *tail) freeze(ctx context.Context) (int, error) {
	t.mu.Lock()
	pipe, g, p := t.pipe, t.gate, t.printer
	t.mu.Unlock()
	if g == nil {
		return -1, errUnread
	}
	select {
	case <-t.ended:
		return -1, nil
	default:
	}
	if !g.Shut(ctx) {
		return -1, errUnread
	}
	p.flush(ctx)
	return descriptor(pipe)
}

// errUnread: an epoch writes faster than we read, or has just been started.
var errUnread = errors.New("an epoch's output is being read")

// thaw undoes freeze.
func (t *tail) thaw() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.gate != nil {
		t.gate.Open()
	}
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
	queue   chan printing
	printed chan struct{}
	dropped int
}

// printing is a line, or a question whether all before it are out.
type printing struct {
	line string
	done chan struct{}
}

func newPrinter(log *slog.Logger) *printer {
	p := &printer{log: log, queue: make(chan printing, tailQueue), printed: make(chan struct{})}
	go func() { // ends with close, once the log takes its last line
		defer close(p.printed)
		for x := range p.queue {
			if x.done != nil {
				close(x.done)
				continue
			}
			p.log.Info(x.line)
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
		p.queue <- printing{line: fmt.Sprintf("%d lines were dropped here: the supervisor's own output was blocked", p.dropped)}
		p.dropped = 0
	}
	select {
	case p.queue <- printing{line: line}:
	default:
		p.dropped++
	}
}

// flush waits until what is queued is printed. Nobody may print meanwhile.
func (p *printer) flush(ctx context.Context) {
	done := make(chan struct{})
	select {
	case p.queue <- printing{done: done}:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
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
