package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"aether.internal/test/load/internal/wire"
)

// chat makes calls over a few client connections, in turn. gRPC itself obeys
// GOAWAY: it connects anew and leaves the old connection to its calls.
type chat struct {
	connections []*grpc.ClientConn
	dials       []atomic.Int64 // what each has dialled
	seen        []atomic.Int64 // dials that a call has reported
	turn        atomic.Int64
	pieces      int
}

func newGRPC(d dialer, k KindPlan) client {
	c := &chat{
		connections: make([]*grpc.ClientConn, k.Connections),
		dials:       make([]atomic.Int64, k.Connections),
		seen:        make([]atomic.Int64, k.Connections),
		pieces:      wire.Pieces(k.StreamDuration),
	}
	for i := range c.connections {
		c.connections[i] = connectGRPC(d, &c.dials[i])
	}
	return c
}

// connectGRPC makes a connection that counts its dials.
func connectGRPC(d dialer, dials *atomic.Int64) *grpc.ClientConn {
	security := insecure.NewCredentials()
	if d.tls != nil {
		config := d.tls.Clone()
		config.ServerName = "" // gRPC wants to derive it from the authority
		security = credentials.NewTLS(config)
	}
	cc, err := grpc.NewClient("passthrough:///proxy", // the dialer knows better
		grpc.WithAuthority(d.address),
		grpc.WithTransportCredentials(security),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			dials.Add(1)
			return d.net.DialContext(ctx, "tcp", d.address)
		}),
		// After a refusal gRPC fails every call until its back-off is over:
		// with the default second, one refusal would count as many.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second},
			MinConnectTimeout: d.timeout,
		}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(wire.Codec{})))
	if err != nil {
		panic(err) // only the target can be wrong, and it is constant
	}
	return cc
}

func (c *chat) close() {
	for _, cc := range c.connections {
		_ = cc.Close()
	}
}

func (c *chat) run(ctx context.Context, n *notes) error {
	ctx, cancel := context.WithCancel(ctx) // releases the stream, however it ends
	defer cancel()
	i := int(c.turn.Add(1)) % len(c.connections)
	defer func() { c.noteReconnects(i, n) }()
	stream, err := c.connections[i].NewStream(ctx, &wire.ChatDesc, wire.ChatMethod)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	return c.talk(ctx, stream, n)
}

// noteReconnects reports each dial of connection i but the first, once.
func (c *chat) noteReconnects(i int, n *notes) {
	now := c.dials[i].Load()
	if before := c.seen[i].Swap(now); before > 0 && now > before {
		n.told += int(now - before)
	}
}

func (c *chat) talk(ctx context.Context, stream grpc.ClientStream, n *notes) error {
	var got []byte
	err := pace(ctx, c.pieces, wire.Beat, func(i int) error {
		sent := wire.Piece(i, wire.PieceSize)
		if err := stream.SendMsg(&sent); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("send message %d: %w", i, err)
		} // EOF: the status is what RecvMsg returns
		if err := stream.RecvMsg(&got); err != nil {
			return fmt.Errorf("message %d of %d: %w", i, c.pieces, err)
		}
		if !bytes.Equal(got, sent) {
			return wrongAnswer{fmt.Sprintf("message %d came back changed", i)}
		}
		return noteEpoch(stream, n)
	})
	if err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	switch err := stream.RecvMsg(&got); {
	case err == nil:
		return wrongAnswer{"more messages came back than were sent"}
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("end of the call: %w", err)
	}
	return nil
}

func noteEpoch(stream grpc.ClientStream, n *notes) error {
	if n.epoch != "" {
		return nil
	}
	header, err := stream.Header()
	if err != nil {
		return fmt.Errorf("response header: %w", err)
	}
	if v := header.Get(wire.EpochHeader); len(v) > 0 {
		n.epoch = v[0]
	}
	return nil
}
