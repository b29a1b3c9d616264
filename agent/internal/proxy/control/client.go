package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"time"

	"golang.org/x/sys/unix"
)

// ErrNoSupervisor is the kind of error when nobody answers at the socket.
var ErrNoSupervisor = errors.New("no supervisor answers")

const (
	dialTime  = 2 * time.Second
	maxAnswer = 8 << 20
)

// Client talks to one supervisor. It is safe for concurrent use and keeps one
// connection for the next request.
type Client struct {
	path string
	http *http.Client
}

// Dial makes a client for the socket at path. Nothing is connected yet.
func Dial(path string) *Client {
	dialer := net.Dialer{Timeout: dialTime}
	return &Client{path: path, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", path)
		},
		MaxIdleConns:       1,
		DisableCompression: true,
	}}}
}

// Close closes the connection that is kept.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the supervisor's status; it waits for ten seconds at most.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return get[Status](ctx, c, http.MethodGet, statusPath)
}

// Reload asks for a hot restart. With Wait it lasts as long as that, or ctx; a
// reload goes on when ctx ends. Errors are of kind ErrNoSupervisor or say what
// the supervisor answered instead.
func (c *Client) Reload(ctx context.Context, req ReloadRequest) (ReloadResult, error) {
	var res ReloadResult
	err := c.do(ctx, http.MethodPost, reloadPath, req, &res)
	return res, err
}

// Upgrade asks for another program in place of the supervisor's. It lasts until
// that is about to happen, or ctx's end.
func (c *Client) Upgrade(ctx context.Context, req UpgradeRequest) (UpgradeResult, error) {
	var res UpgradeResult
	err := c.do(ctx, http.MethodPost, upgradePath, req, &res)
	return res, err
}

// Drain takes the node out of the traffic, or with out false puts it back.
func (c *Client) Drain(ctx context.Context, out bool) (DrainResult, error) {
	path := undrainPath
	if out {
		path = drainPath
	}
	return get[DrainResult](ctx, c, http.MethodPost, path)
}

// History asks for the last tries at a handoff.
func (c *Client) History(ctx context.Context) (History, error) {
	return get[History](ctx, c, http.MethodGet, historyPath)
}

// Doctor has the supervisor look at what may go wrong.
func (c *Client) Doctor(ctx context.Context) (Diagnosis, error) {
	return get[Diagnosis](ctx, c, http.MethodGet, doctorPath)
}

func get[T any](ctx context.Context, c *Client, method, path string) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var answer T
	err := c.do(ctx, method, path, nil, &answer)
	return answer, err
}

// SetLog sets the least level that is logged, and tells which one it is by then;
// an empty level only asks.
func (c *Client) SetLog(ctx context.Context, level LogLevel) (LogLevel, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var now LogLevel
	var err error
	if level.Level == "" {
		err = c.do(ctx, http.MethodGet, logPath, nil, &now)
	} else {
		err = c.do(ctx, http.MethodPost, logPath, level, &now)
	}
	return now, err
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	if err := CheckPath(c.path); err != nil {
		return err
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if in == nil {
		body = nil
	}
	// The host is never looked up; HTTP wants one.
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.explain(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return c.explain(ctx, err)
	}
	return c.decode(resp, data, out)
}

// explain turns what net/http says into what it means here.
func (c *Client) explain(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("no answer from the supervisor at %s: %w", c.path, ctx.Err())
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w at %s: there is no such socket", ErrNoSupervisor, c.path)
	case errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w at %s: the socket is a dead one's", ErrNoSupervisor, c.path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w at %s: the socket belongs to another user: %w", ErrNoSupervisor, c.path, cause(err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, unix.ECONNRESET):
		return fmt.Errorf("%w at %s any more: it ended before its answer", ErrNoSupervisor, c.path)
	}
	return fmt.Errorf("%w at %s: %w", ErrNoSupervisor, c.path, cause(err))
}

func (c *Client) decode(resp *http.Response, data []byte, out any) error {
	if resp.StatusCode/100 == 2 {
		if err := json.Unmarshal(data, out); err != nil {
			return fmt.Errorf("the supervisor at %s answered what isn't its JSON: %w", c.path, err)
		}
		return nil
	}
	var no refusal
	if json.Unmarshal(data, &no) != nil || no.Error == "" {
		return fmt.Errorf("the supervisor at %s answered %s", c.path, resp.Status)
	}
	return errors.New(no.Error)
}
