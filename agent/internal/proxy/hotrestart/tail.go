package hotrestart

import (
	"bufio"
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

	mu      sync.Mutex // between the reader and whoever wants the lines
	ring    []string
	dropped int
}

func newTail(log *slog.Logger, epoch int) *tail {
	return &tail{log: log, epoch: epoch, ended: make(chan struct{})}
}

// read copies lines to the log until the last writer has closed.
func (t *tail) read(r io.ReadCloser) {
	defer close(t.ended)
	defer r.Close()
	queue := make(chan string, tailQueue)
	printed := make(chan struct{})
	go func() { // the printer: it may block, the reader never does
		defer close(printed)
		for line := range queue {
			t.log.Info(line, "source", "envoy", "epoch", t.epoch)
		}
	}()
	lines := bufio.NewReaderSize(r, lineBytes)
	for {
		line, _, err := lines.ReadLine() // a long line comes in parts
		if err != nil {
			break
		}
		t.keep(string(line), queue)
	}
	close(queue)
	select {
	case <-printed:
	case <-time.After(time.Second): // our output is blocked: the rest is lost
	}
}

func (t *tail) keep(line string, queue chan<- string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ring = append(t.ring, line); len(t.ring) > tailLines {
		t.ring = t.ring[1:]
	}
	select {
	case queue <- line:
	default:
		t.dropped++
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
