package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"

	"aether.internal/test/load/internal/wire"
)

// burst sends random bytes at once, half-closes, and wants the same back.
type burst struct{ dialer }

func newTCP(d dialer, _ KindPlan) client { return &burst{d} }

func (b *burst) close() {}

// The most that fits into any socket buffer, so that writing it before
// reading can't deadlock.
const burstSize = 8 << 10

func (b *burst) run(ctx context.Context, _ *notes) error {
	c, err := b.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer bound(ctx, c)()
	sent := wire.Piece(rand.IntN(1<<16), 1+rand.IntN(burstSize))
	if _, err := c.Write(sent); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if err := c.CloseWrite(); err != nil {
		return fmt.Errorf("half-close: %w", err)
	}
	if err := expect(c, sent); err != nil {
		return err
	}
	return expectEnd(c)
}

// hold keeps a connection busy with one small message each Beat.
type hold struct {
	dialer
	pieces int
}

func newTCPHold(d dialer, k KindPlan) client { return &hold{d, wire.Pieces(k.StreamDuration)} }

func (h *hold) close() {}

const holdSize = 64

func (h *hold) run(ctx context.Context, _ *notes) error {
	c, err := h.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer bound(ctx, c)()
	err = pace(ctx, h.pieces, wire.Beat, func(i int) error {
		sent := wire.Piece(i, holdSize)
		if _, err := c.Write(sent); err != nil {
			return fmt.Errorf("send message %d: %w", i, err)
		}
		return expect(c, sent)
	})
	if err != nil {
		return err
	}
	if err := c.CloseWrite(); err != nil {
		return fmt.Errorf("half-close: %w", err)
	}
	return expectEnd(c)
}

func expect(c conn, want []byte) error {
	got := make([]byte, len(want))
	n, err := io.ReadFull(c, got)
	switch {
	case err != nil:
		return fmt.Errorf("echo after %d of %d bytes: %w", n, len(want), err)
	case !bytes.Equal(got, want):
		return wrongAnswer{fmt.Sprintf("%d bytes came back changed", len(want))}
	}
	return nil
}

// expectEnd wants the end of the echo, and nothing before it.
func expectEnd(c conn) error {
	n, err := c.Read(make([]byte, 1))
	switch {
	case n > 0:
		return wrongAnswer{"more bytes came back than were sent"}
	case err == io.EOF: //nolint:errorlint // exactly: a TLS connection cut without its close_notify wraps another
		return nil
	}
	return fmt.Errorf("end of the echo: %w", err)
}
