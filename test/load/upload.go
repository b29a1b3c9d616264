package load

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"

	"aether.internal/test/load/internal/wire"
)

// upload sends a body piece by piece, and the answer must say that all of it
// arrived.
type upload struct {
	dialer
	header []byte
	pieces int
	want   wire.Sum
}

func newUpload(d dialer, k KindPlan) client {
	n := wire.Pieces(k.StreamDuration)
	header := "POST " + wire.EchoPath + " HTTP/1.1\r\nHost: " + d.address +
		"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
	return &upload{d, []byte(header), n, wire.StreamSum(n)}
}

func (u *upload) close() {}

func (u *upload) run(ctx context.Context, n *notes) error {
	c, err := u.dialH1(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer bound(ctx, c)()
	if err := u.send(ctx, c); err != nil {
		return err
	}
	_, err = c.answer(n, func(h http.Header) error {
		if got := h.Get(wire.ReceivedHeader); got != u.want.String() {
			return wrongAnswer{fmt.Sprintf("upstream received %q, sent %s (bytes:crc32c)", got, &u.want)}
		}
		return nil
	})
	return err
}

func (u *upload) send(ctx context.Context, c *h1conn) error {
	if _, err := c.Write(u.header); err != nil {
		return fmt.Errorf("send header: %w", err)
	}
	body := httputil.NewChunkedWriter(c)
	err := pace(ctx, u.pieces, wire.Beat, func(i int) error {
		_, err := body.Write(wire.Piece(i, wire.PieceSize))
		return err
	})
	if err != nil {
		return fmt.Errorf("send body: %w", err)
	}
	if _, err := c.Write([]byte("0\r\n\r\n")); err != nil {
		return fmt.Errorf("end body: %w", err)
	}
	return nil
}
