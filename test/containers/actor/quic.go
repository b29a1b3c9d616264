package actor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/quic-go/quic-go/http3"
)

// QUIC is a load of HTTP/3.
type QUIC struct {
	URL    string // https://host:port
	CA     string // PEM file
	Kept   int    // connections with one request after the other
	Beat   time.Duration
	Stream time.Duration // length of the streams, one more each second, on connections of their own
}

// QUICCount says what became of requests. A connection that failed is made anew
// for the next one.
type QUICCount struct {
	Kept, KeptFailed       int
	New, NewFailed         int // one request, one connection
	StreamsBegun           int
	Streams, StreamsFailed int            // those that have ended
	Errors                 map[string]int // by kind and message
	Epochs                 map[string]int // answers by x-epoch
}

type quicClients struct {
	QUIC
	load  Load // for its credentials
	stop  context.CancelFunc
	ended sync.WaitGroup

	mu    sync.Mutex // between clients
	count QUICCount
}

func (s *stage) startQUIC(_ context.Context, q QUIC) (struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.quic != nil {
		return struct{}{}, errors.New("HTTP/3 is running")
	}
	c := &quicClients{QUIC: q, load: Load{CA: q.CA}, count: QUICCount{Errors: map[string]int{}, Epochs: map[string]int{}}}
	if err := c.load.credentials(); err != nil {
		return struct{}{}, err
	}
	ctx, stop := context.WithCancel(context.Background())
	c.stop = stop
	s.quic = c
	for range q.Kept {
		c.ended.Go(func() { c.keep(ctx) })
	}
	c.ended.Go(func() { c.each(ctx, q.Beat, c.fresh) })
	c.ended.Go(func() { c.each(ctx, time.Second, c.stream) })
	return struct{}{}, nil
}

func (c *quicClients) transport() *http3.Transport {
	return &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: c.load.RootCAs, MinVersion: tls.VersionTLS13}}
}

// keep makes one request after the other on one connection.
func (c *quicClients) keep(ctx context.Context) {
	t := c.transport()
	defer func() { _ = t.Close() }()
	beat := time.NewTicker(c.Beat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		if !c.get(t, "kept", "/hello", 5*time.Second, &c.count.Kept, &c.count.KeptFailed) {
			_ = t.Close()
			t = c.transport()
		}
	}
}

// each begins something with each beat; ended joins it.
func (c *quicClients) each(ctx context.Context, interval time.Duration, what func()) {
	beat := time.NewTicker(interval)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			c.ended.Go(what)
		}
	}
}

func (c *quicClients) fresh() {
	t := c.transport()
	defer func() { _ = t.Close() }()
	c.get(t, "new", "/hello", 5*time.Second, &c.count.New, &c.count.NewFailed)
}

func (c *quicClients) stream() {
	c.mu.Lock()
	c.count.StreamsBegun++
	c.mu.Unlock()
	t := c.transport()
	defer func() { _ = t.Close() }()
	path := fmt.Sprintf("/stream?ms=%d", c.Stream.Milliseconds())
	c.get(t, "stream", path, c.Stream+20*time.Second, &c.count.Streams, &c.count.StreamsFailed)
}

// get counts one request, and says if it was answered in full.
func (c *quicClients) get(t *http3.Transport, kind, path string, timeout time.Duration, all, failed *int) bool {
	client := http.Client{Transport: t, Timeout: timeout}
	resp, err := client.Get(c.URL + path)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	*all++
	if err != nil {
		*failed++
		c.count.Errors[kind+": "+err.Error()]++
		return false
	}
	c.count.Epochs[resp.Header.Get("x-epoch")]++
	return true
}

func (c *quicClients) end() {
	c.stop()
	c.ended.Wait()
}

func (s *stage) reportQUIC(_ context.Context, stop bool) (QUICCount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.quic
	if c == nil {
		return QUICCount{}, errors.New("no HTTP/3 is running")
	}
	if stop {
		c.end()
		s.quic = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	count := c.count
	count.Errors, count.Epochs = maps.Clone(count.Errors), maps.Clone(count.Epochs)
	return count, nil
}

// QUIC starts HTTP/3, which runs until a report stops it.
func (c *Client) QUIC(ctx context.Context, q QUIC) error {
	_, err := do[struct{}](ctx, c, "quic", q)
	return err
}

// QUICReport of it, which stop ends.
func (c *Client) QUICReport(ctx context.Context, stop bool) (QUICCount, error) {
	return do[QUICCount](ctx, c, "quic-report", stop)
}
