package control

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// raw sends one request as it stands and returns the answer and its body.
func raw(t *testing.T, path, request string) (*http.Response, string) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	_, err = io.WriteString(conn, request)
	must(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	resp.Body.Close()
	return resp, string(body)
}

func TestRoutes(t *testing.T) {
	reloads := make(chan ReloadRequest, 1)
	path, _ := serve(t, fake{
		status: func(context.Context) (Status, error) { return Status{}, errors.New("the owner doesn't answer") },
		reload: func(_ context.Context, req ReloadRequest) (ReloadResult, error) {
			reloads <- req
			return ReloadResult{Outcome: Unchanged, Epoch: 3}, nil
		},
	})
	post := func(body string) string {
		return "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	}
	const unchanged = `{"outcome":"unchanged","epoch":3,"duration_ms":0}`
	for _, c := range []struct {
		name, request string
		code          int
		body          string
		acted         *ReloadRequest
	}{
		{"reload without a body", post(""), 200, unchanged, &ReloadRequest{}},
		{"reload", post(`{"force":true,"wait":true}`), 200, unchanged, &ReloadRequest{Force: true, Wait: true}},
		{"an action by GET", "GET /v1/reload HTTP/1.1\r\nHost: x\r\n\r\n", 405, `{"error":"/v1/reload takes POST only, not GET"}`, nil},
		{"an action by PUT", "PUT /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, `{"error":"/v1/reload takes POST only, not PUT"}`, nil},
		{"a look by POST", "POST /v1/status HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, `{"error":"/v1/status takes GET only, not POST"}`, nil},
		{"an unknown path", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, `{"error":"no such path: /"}`, nil},
		{"the log level", "GET /v1/log HTTP/1.1\r\nHost: x\r\n\r\n", 200, `{"level":"info"}`, nil},
		{"another log level", "POST /v1/log HTTP/1.1\r\nHost: x\r\nContent-Length: 17\r\n\r\n" + `{"level":"debug"}`, 200, `{"level":"debug"}`, nil},
		{"no log level", "POST /v1/log HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\n" + `{"level":"loud"}`, 400, `{"error":"no such level"}`, nil},
		{"no log request", "POST /v1/log HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n" + `{"lvl":"loud"}`, 400, `{"error":"log: the request's body: json: unknown field \"lvl\""}`, nil},
		{"a log level by PUT", "PUT /v1/log HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405, `{"error":"/v1/log takes GET, POST only, not PUT"}`, nil},
		{"drain", "POST /v1/drain HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, `{"drained":true,"epoch":3,"told":true}`, nil},
		{"undrain", "POST /v1/undrain HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 200, `{"drained":false,"epoch":3,"told":true}`, nil},
		{"drain by GET", "GET /v1/drain HTTP/1.1\r\nHost: x\r\n\r\n", 405, `{"error":"/v1/drain takes POST only, not GET"}`, nil},
		{"no diagnosis", "GET /v1/doctor HTTP/1.1\r\nHost: x\r\n\r\n", 503, `{"error":"the owner doesn't answer"}`, nil},
		{"a path of later", "POST /v1/later HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 404, `{"error":"no such path: /v1/later"}`, nil},
		{"an upgrade", "POST /v1/upgrade HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 202, `{"outcome":"accepted","to":"2"}`, nil},
		{"a misspelt field", post(`{"forse":true}`), 400, `{"error":"reload: the request's body: json: unknown field \"forse\""}`, nil},
		{"no JSON", post(`force`), 400, `{"error":"reload: the request's body: invalid character 'o' in literal false (expecting 'a')"}`, nil},
		{"two values", post(`{}{}`), 400, `{"error":"reload: the request's body: more than one JSON value"}`, nil},
		{"a large body", post(strings.Repeat(" ", maxBody+1)), 413, `{"error":"the request's body is larger than 4096 bytes"}`, nil},
		{"no status", "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", 503, `{"error":"the owner doesn't answer"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, body := raw(t, path, c.request)
			if resp.StatusCode != c.code || body != c.body+"\n" || resp.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %s %s", resp.StatusCode, resp.Header.Get("Content-Type"), body)
			}
			if allow := resp.Header.Get("Allow"); (allow != "") != (c.code == 405) {
				t.Errorf("Allow: %q", allow)
			}
			select {
			case req := <-reloads:
				if c.acted == nil || req != *c.acted {
					t.Errorf("acted: %+v", req)
				}
			default:
				if c.acted != nil {
					t.Error("nothing was done")
				}
			}
		})
	}
}

func TestAWaitingReloadNoticesThatItsClientWentAway(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	path, _ := serve(t, fake{reload: func(ctx context.Context, _ ReloadRequest) (ReloadResult, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return ReloadResult{}, ctx.Err()
	}})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() { // client, joined below
		_, err := client(t, path).Reload(ctx, ReloadRequest{Wait: true})
		failed <- err
	}()
	soon(t, started, "reload")
	select {
	case err := <-ended:
		t.Fatalf("ended while its client waited: %v", err)
	default:
	}
	cancel()
	if err := soon(t, ended, "the reload's context"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := soon(t, failed, "the client"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheEndAnswersThoseWhoWait(t *testing.T) {
	started := make(chan struct{})
	path, stop := serve(t, fake{reload: func(ctx context.Context, _ ReloadRequest) (ReloadResult, error) {
		close(started)
		<-ctx.Done()
		return ReloadResult{}, ctx.Err()
	}})
	failed := make(chan error, 1)
	go func() { // client, joined below
		_, err := client(t, path).Reload(t.Context(), ReloadRequest{Wait: true})
		failed <- err
	}()
	soon(t, started, "reload")
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := soon(t, failed, "the client"); err == nil || err.Error() != "the supervisor is stopping" {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	listen(t, path) // and its lock is free
}

// A client that says nothing, or half a request, can't hold up the end.
func TestSilentClientsDontHoldUpTheEnd(t *testing.T) {
	path, stop := serve(t, fake{})
	for _, said := range []string{"", "GET /v1/st", "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"} {
		conn, err := net.Dial("unix", path)
		must(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, said)
		must(t, err)
	}
	if _, err := client(t, path).Status(t.Context()); err != nil { // the others are in by now
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- stop() }() // joined below
	if err := soon(t, ended, "Serve"); err != nil {
		t.Error(err)
	}
}

func TestServeReportsALostListener(t *testing.T) {
	path := socketPath(t)
	s := listen(t, path)
	s.listener.Close()
	err := s.Serve(t.Context(), fake{}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}
