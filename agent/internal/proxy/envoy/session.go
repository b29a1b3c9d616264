package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// session is one fresh connection: whoever answers its first query answers all
// of them, or the later ones fail with errConnectionLost.
type session struct {
	admin *Admin
	http  *http.Client
}

const anyNumberOfDials = 0

var (
	errConnectionLost = errors.New("the connection was closed between two queries")
	errOtherEpoch     = errors.New("another epoch has begun to answer meanwhile")
)

func (a *Admin) session() *session { return &session{a, client(a.address, 1)} }

// oneEpoch has all queries of ask answered by the same epoch. ask may be
// called twice: an Envoy of 1.36.4 or 1.39.3 whose health check was failed
// closes the connection after each answer; then ask gets as many as it needs,
// between two looks at who is there.
func (a *Admin) oneEpoch(ctx context.Context, ask func(*session) error) error {
	s := a.session()
	err := ask(s)
	s.close()
	if !errors.Is(err, errConnectionLost) {
		return err
	}
	before, err := a.ServerInfo(ctx)
	if err != nil {
		return err
	}
	s = &session{a, client(a.address, anyNumberOfDials)}
	defer s.close()
	if err := ask(s); err != nil {
		return err
	}
	after, err := a.ServerInfo(ctx)
	if err == nil && after.Epoch != before.Epoch {
		err = fmt.Errorf("admin %s: %w (%d, before %d)", a.address, errOtherEpoch, after.Epoch, before.Epoch)
	}
	return err
}

func (s *session) close() { s.http.CloseIdleConnections() }

func (s *session) get(ctx context.Context, q query, read func(answer) error) error {
	return s.admin.ask(ctx, s.http, q, read)
}

// client dials at most that often: net/http would silently repeat a GET on a
// new connection, where by now another epoch may answer.
func client(a Address, dials int32) *http.Client {
	var made atomic.Int32
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if made.Add(1) > dials && dials != anyNumberOfDials {
			return nil, errConnectionLost
		}
		// net/http lets a dial go on after its request has ended.
		d := net.Dialer{Timeout: answerWithin}
		network, address := a.network()
		return d.DialContext(ctx, network, address)
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dial, DisableCompression: true,
			MaxConnsPerHost: 1, MaxIdleConns: 1, IdleConnTimeout: time.Minute,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// query is one request.
type query struct {
	method string // "" means GET
	path   string
	within time.Duration // 0 means answerWithin
	limit  int64         // bytes of the answer
	status []int         // acceptable ones, nil means 200
}

// ask sends q and lets read have the answer. Its errors name the admin, the
// query and what went wrong.
func (a *Admin) ask(ctx context.Context, c *http.Client, q query, read func(answer) error) error {
	if q.method == "" {
		q.method = http.MethodGet
	}
	if q.within == 0 {
		q.within = answerWithin
	}
	ctx, cancel := context.WithTimeoutCause(ctx, q.within,
		fmt.Errorf("no answer within %v: %w", q.within, context.DeadlineExceeded))
	defer cancel()
	if err := exchange(ctx, c, q, read); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		path, _, _ := strings.Cut(q.path, "?")
		return fmt.Errorf("admin %s: %s %s: %w", a.address, q.method, path, err)
	}
	return nil
}

func exchange(ctx context.Context, c *http.Client, q query, read func(answer) error) error {
	req, err := http.NewRequestWithContext(ctx, q.method, "http://envoy"+q.path, nil)
	if err != nil {
		return err
	}
	resp, err := c.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // ours names the query already
		}
		return err
	}
	defer resp.Body.Close()
	ans := answer{&limited{resp.Body, q.limit}}
	if resp.StatusCode != http.StatusOK && !slices.Contains(q.status, resp.StatusCode) {
		return refusal(resp.StatusCode, resp.Body)
	}
	return read(ans)
}

// statusError is an answer with a status that the query can't use.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.text) }

func isStatus(err error, status int) bool {
	var e *statusError
	return errors.As(err, &e) && e.status == status
}

func refusal(status int, body io.Reader) error {
	head, _ := io.ReadAll(io.LimitReader(body, 200))
	line, _, _ := strings.Cut(strings.TrimSpace(string(head)), "\n")
	return &statusError{status, line}
}
