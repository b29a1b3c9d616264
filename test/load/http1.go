package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"

	"aether.internal/test/load/internal/wire"
)

// Requests are written by hand and only responses are parsed: net/http's own
// client costs several times the CPU, and it retries without telling.

// get is a GET of path as it goes over the wire.
func get(path, address string, header string) []byte {
	return []byte("GET " + path + " HTTP/1.1\r\nHost: " + address + "\r\n" + header + "\r\n")
}

// h1conn is an HTTP/1.1 connection.
type h1conn struct {
	conn
	in    *bufio.Reader
	ended error // what reading ended with; nil while it goes on
}

// Read is for in alone.
func (c *h1conn) Read(p []byte) (int, error) {
	n, err := c.conn.Read(p)
	c.ended = err
	return n, err
}

func (d *dialer) dialH1(ctx context.Context) (*h1conn, error) {
	c, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	h := &h1conn{conn: c}
	h.in = bufio.NewReader(h)
	return h, nil
}

// errUnanswered is a connection that ended before any byte of the answer.
type errUnanswered struct{ cause error }

func (e errUnanswered) Error() string { return "no byte of an answer: " + e.cause.Error() }
func (e errUnanswered) Unwrap() error { return e.cause }

// ask sends a request and reads the whole answer. stays is false when the
// server says that this was the connection's last.
func (c *h1conn) ask(request []byte, n *notes) (stays bool, err error) {
	if _, err := c.Write(request); err != nil {
		return false, errUnanswered{fmt.Errorf("send request: %w", err)}
	}
	return c.answer(n, nil)
}

// answer reads a response; more, unless nil, checks its headers.
func (c *h1conn) answer(n *notes, more func(http.Header) error) (stays bool, err error) {
	if _, err := c.in.Peek(1); err != nil {
		return false, errUnanswered{err}
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return false, c.unreadable(err)
	}
	if err := verify(resp, n); err != nil {
		return false, err
	}
	if more != nil {
		if err := more(resp.Header); err != nil {
			return false, err
		}
	}
	return !resp.Close, nil
}

// unreadable tells a header that was cut, which net/http calls malformed, from
// one that isn't HTTP.
func (c *h1conn) unreadable(err error) error {
	if c.ended != nil {
		return fmt.Errorf("response header: %w", c.ended)
	}
	return wrongAnswer{"response header: " + err.Error()}
}

// verify reads the body to its end and compares it with what was announced.
func verify(resp *http.Response, n *notes) error {
	defer resp.Body.Close()
	n.epoch = resp.Header.Get(wire.EpochHeader)
	want, announced := wire.Announced(resp.Header)
	if resp.StatusCode != http.StatusOK || !announced {
		return unwanted(resp)
	}
	var got wire.Sum
	_, err := io.Copy(&got, resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("body after %d of %d bytes: %w", got.Bytes, want.Bytes, err)
	case got.Bytes < want.Bytes:
		return cutShort{fmt.Sprintf("body ended after %d of %d bytes", got.Bytes, want.Bytes)}
	case got != want:
		return wrongAnswer{fmt.Sprintf("body is %s, announced %s (bytes:crc32c)", &got, &want)}
	}
	return nil
}

// unwanted quotes the answer: Envoy's says what is wrong upstream.
func unwanted(resp *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(resp.Body, 200))
	if err != nil {
		return fmt.Errorf("status %d, body: %w", resp.StatusCode, err)
	}
	return wrongAnswer{fmt.Sprintf("status %d: %q", resp.StatusCode, strings.TrimSpace(string(body)))}
}

// single is a connection for each request.
type single struct {
	dialer
	request []byte
}

func newSingle(d dialer, _ KindPlan) client {
	return &single{d, get(wire.HelloPath, d.address, "Connection: close\r\n")}
}

func newStream(d dialer, k KindPlan) client {
	return &single{d, get(wire.StreamPath+"?"+streamQuery(k), d.address, "Connection: close\r\n")}
}

func streamQuery(k KindPlan) string {
	return fmt.Sprintf("ms=%d", k.StreamDuration.Milliseconds())
}

func (s *single) close() {}

func (s *single) run(ctx context.Context, n *notes) error {
	c, err := s.dialH1(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	defer bound(ctx, c)()
	_, err = c.ask(s.request, n)
	return err
}

// gone tells whether err is a connection's end and not, say, a timeout.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
