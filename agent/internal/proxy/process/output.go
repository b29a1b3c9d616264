package process

import (
	"context"
	"os"
	"time"
)

// lingering is how long a grandchild may keep the output open after the child
// has ended; without one the end comes at once.
const lingering = time.Second

// Output runs s, like Run, and returns the last limit bytes that it wrote to
// stdout and to stderr. It is always read to the end, so that a talkative child
// isn't stopped by a full pipe. s.Stdout and s.Stderr are not used.
func Output(ctx context.Context, s Spec, limit int) (stdout, stderr []byte, _ Status, _ error) {
	out, err := newTail(limit)
	if err != nil {
		return nil, nil, Status{}, err
	}
	errs, err := newTail(limit)
	if err != nil {
		out.finish()
		return nil, nil, Status{}, err
	}
	s.Stdout, s.Stderr = out.write, errs.write
	status, err := Run(ctx, s)
	return out.finish(), errs.finish(), status, err
}

// tail keeps the last bytes that come out of a pipe.
type tail struct {
	read, write *os.File
	limit       int
	kept        chan []byte
}

// newTail starts a goroutine that ends with the pipe, at the latest in finish.
func newTail(limit int) (*tail, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t := &tail{r, w, limit, make(chan []byte, 1)}
	go func() { t.kept <- t.collect() }()
	return t, nil
}

func (t *tail) collect() []byte {
	var kept []byte
	buf := make([]byte, 4096)
	for {
		n, err := t.read.Read(buf)
		kept = append(kept, buf[:n]...)
		if len(kept) > 2*t.limit || err != nil {
			kept = append(kept[:0], kept[max(0, len(kept)-t.limit):]...)
		}
		if err != nil {
			return kept
		}
	}
}

func (t *tail) finish() []byte {
	t.write.Close()
	_ = t.read.SetReadDeadline(time.Now().Add(lingering))
	kept := <-t.kept
	t.read.Close()
	return kept
}
