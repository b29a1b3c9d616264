package actor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// datagrams is an upstream that sends each one back.
type datagrams struct {
	conn  net.PacketConn
	ended chan struct{}
}

func serveDatagrams() (*datagrams, error) {
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &datagrams{conn: c, ended: make(chan struct{})}
	go d.echo() // joined by close
	return d, nil
}

func (d *datagrams) echo() {
	defer close(d.ended)
	buf := make([]byte, 2048)
	for {
		n, from, err := d.conn.ReadFrom(buf)
		if err != nil {
			return
		}
		_, _ = d.conn.WriteTo(buf[:n], from) // lost or not: the client counts
	}
}

func (d *datagrams) address() string { return d.conn.LocalAddr().String() }
func (d *datagrams) close()          { _ = d.conn.Close(); <-d.ended }

// Flows are UDP clients, each of one source port.
type Flows struct {
	Address string
	Old     int // flows that go on for the whole time
	// Besides them, a new flow of one datagram is begun with each beat.
	Beat time.Duration
}

// FlowCount says what became of datagrams. An answer that isn't there yet is
// missing; once all is over a missing one is lost.
type FlowCount struct {
	Old, OldAnswered int64
	New, NewAnswered int64
}

// flows are those that are running.
type flows struct {
	Flows
	stop  context.CancelFunc
	ended sync.WaitGroup

	old, oldAnswered, fresh, freshAnswered atomic.Int64
}

func (s *stage) startFlows(_ context.Context, f Flows) (struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flows != nil {
		return struct{}{}, errors.New("flows are running")
	}
	ctx, stop := context.WithCancel(context.Background())
	s.flows = &flows{Flows: f, stop: stop}
	for range f.Old {
		c, err := net.Dial("udp", f.Address)
		if err != nil {
			stop()
			return struct{}{}, err
		}
		s.flows.ended.Go(func() { s.flows.receive(c) })
		s.flows.ended.Go(func() { s.flows.send(ctx, c) })
	}
	s.flows.ended.Go(func() { s.flows.begin(ctx) })
	return struct{}{}, nil
}

// send goes on for a while after the last one, for the answers on their way.
func (f *flows) send(ctx context.Context, c net.Conn) {
	defer c.Close()
	beat := time.NewTicker(f.Beat)
	defer beat.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			<-time.After(time.Second)
			return
		case <-beat.C:
			if _, err := fmt.Fprint(c, n); err == nil { // refused: an earlier one found nobody
				f.old.Add(1)
			}
		}
	}
}

func (f *flows) receive(c net.Conn) {
	buf := make([]byte, 64)
	for {
		_, err := c.Read(buf)
		switch {
		case err == nil:
			f.oldAnswered.Add(1)
		case errors.Is(err, net.ErrClosed):
			return
		}
	}
}

// begin makes a new flow with each beat.
func (f *flows) begin(ctx context.Context) {
	beat := time.NewTicker(f.Beat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			f.ended.Go(f.one)
		}
	}
}

func (f *flows) one() {
	c, err := net.Dial("udp", f.Address)
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	f.fresh.Add(1)
	if _, err := c.Write([]byte("new")); err != nil {
		return
	}
	if _, err := c.Read(make([]byte, 64)); err == nil {
		f.freshAnswered.Add(1)
	}
}

func (f *flows) end() {
	f.stop()
	f.ended.Wait()
}

func (s *stage) reportFlows(_ context.Context, stop bool) (FlowCount, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.flows
	if f == nil {
		return FlowCount{}, errors.New("no flows")
	}
	if stop {
		f.end()
		s.flows = nil
	}
	return FlowCount{f.old.Load(), f.oldAnswered.Load(), f.fresh.Load(), f.freshAnswered.Load()}, nil
}

// Flows starts some, which run until a report stops them.
func (c *Client) Flows(ctx context.Context, f Flows) error {
	_, err := do[struct{}](ctx, c, "flows", f)
	return err
}

// FlowReport of those, which stop ends.
func (c *Client) FlowReport(ctx context.Context, stop bool) (FlowCount, error) {
	return do[FlowCount](ctx, c, "flows-report", stop)
}
