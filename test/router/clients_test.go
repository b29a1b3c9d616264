package router

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a worker whose requests are answered when the test lets them.
type gate struct {
	server  *httptest.Server
	open    chan struct{}
	began   atomic.Int32 // requests that have reached it
	running atomic.Int32
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{open: make(chan struct{}, 100)}
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.running.Add(1)
		g.began.Add(1)
		defer g.running.Add(-1)
		if r.URL.Path == "/stream" { // its first half comes at once
			fmt.Fprint(w, "do")
			_ = http.NewResponseController(w).Flush()
			defer fmt.Fprint(w, "ne")
		} else {
			defer fmt.Fprint(w, "done")
		}
		select {
		case <-g.open:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() {
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

// let answers one request.
func (g *gate) let() { g.open <- struct{}{} }

func (g *gate) address() string { return g.server.Listener.Addr().String() }

// gated is a pod whose pool has one worker with one slot: the second request is parked.
func gated(t *testing.T) (*pod, *gate) {
	t.Helper()
	p, g := newPod(t), newGate(t)
	p.worker, p.slots = g.address(), 1
	return p, g
}

// request is a GET on a connection of its own.
type request struct {
	done   chan struct{}
	status int
	body   string
	err    error
	reason string
}

func (p *pod) get(ctx context.Context, path string) *request {
	r := &request{done: make(chan struct{})}
	go func() { // ends with the pod at the latest
		defer close(r.done)
		transport := &http.Transport{DisableKeepAlives: true}
		client := http.Client{Transport: transport, Timeout: patience}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.target().HTTP+path, nil)
		if err != nil {
			r.err = err
			return
		}
		answer, err := client.Do(req)
		if err != nil {
			r.err = err
			return
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		r.status, r.body, r.err, r.reason = answer.StatusCode, string(body), err, answer.Header.Get("x-atenet-reason")
	}()
	p.Cleanup(func() { <-r.done })
	return r
}

func (r *request) ok() bool {
	<-r.done
	return r.err == nil && r.status == http.StatusOK && r.body == "done"
}

func (r *request) String() string {
	<-r.done
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("%d %q %s", r.status, r.body, r.reason)
}

// crowd is one client of each kind that a drain has to care for.
type crowd struct {
	p       *pod
	g       *gate
	running *request // it has the only slot
	parked  *request
	tcp     net.Conn
}

// settle starts them and waits until they are where they should be.
func (p *pod) settle(g *gate) *crowd {
	p.Helper()
	c := &crowd{p: p, g: g}
	c.running = p.get(context.Background(), "/hold")
	p.until("a request to run", func() bool { return g.running.Load() == 1 })
	c.parked = p.get(context.Background(), "/hold")
	p.until("a request to be parked", func() bool { return p.stats().Parked == 1 })
	c.tcp = p.hold()
	return c
}

// letAll lets everybody finish, and returns how many did.
func (c *crowd) letAll() (ok int) {
	c.g.let()
	c.g.let()
	if c.running.ok() {
		ok++
	}
	if c.parked.ok() {
		ok++
	}
	if c.flows() {
		ok++
	}
	c.tcp.Close()
	return ok
}

func (c *crowd) flows() bool {
	if _, err := c.tcp.Write([]byte("x")); err != nil {
		return false
	}
	_, err := io.ReadFull(c.tcp, make([]byte, 1))
	return err == nil
}

// idleConnection is a keep-alive connection that has made one request.
func (p *pod) idleConnection(g *gate) net.Conn {
	p.Helper()
	c, err := net.DialTimeout("tcp", p.target().HTTP, patience)
	check(p.T, err)
	p.Cleanup(func() { c.Close() })
	check(p.T, c.SetDeadline(time.Now().Add(patience)))
	g.let()
	fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	_, err = io.ReadAtLeast(c, make([]byte, 4096), 12)
	check(p.T, err)
	return c
}
