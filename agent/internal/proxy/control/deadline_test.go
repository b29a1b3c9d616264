package control

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes: no kernel, so that synctest
// has the clock.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }
func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// inPipe runs do against a server in a bubble of its own.
func inPipe(t *testing.T, sup Supervisor, do func(t *testing.T, conn net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		l := pipes{make(chan net.Conn), make(chan struct{})}
		srv := newHTTP(t.Context(), sup, slog.New(slog.DiscardHandler))
		served := make(chan struct{})
		go func() { _ = srv.Serve(l); close(served) }() // joined below
		ours, theirs := net.Pipe()
		l.conns <- theirs
		do(t, ours)
		ours.Close()
		srv.Close()
		<-served
	})
}

// net/http reads on in the background to notice a client that goes away: the
// deadline for a request must not be taken for that.
func TestAReloadMayTakeItsTime(t *testing.T) {
	const long = 3 * time.Hour
	sup := fake{reload: func(ctx context.Context, _ ReloadRequest) (ReloadResult, error) {
		select {
		case <-ctx.Done():
			return ReloadResult{Outcome: Failed, Error: ctx.Err().Error()}, nil
		case <-time.After(long):
			return ReloadResult{Outcome: Committed, Epoch: 1, Duration: long}, nil
		}
	}}
	for _, body := range []string{"", "{}"} {
		inPipe(t, sup, func(t *testing.T, conn net.Conn) {
			_, err := fmt.Fprintf(conn, "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
			must(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			must(t, err)
			got, _ := io.ReadAll(resp.Body)
			if want := `{"outcome":"committed","epoch":1,"duration_ms":10800000}` + "\n"; string(got) != want {
				t.Errorf("with body %q: %s", body, got)
			}
		})
	}
}

func TestDawdlersAreCutOff(t *testing.T) {
	for _, c := range []struct {
		name, said string
		within     time.Duration
	}{
		{"half a header", "GET /v1/status HTTP/1.1\r\nHo", headerTime},
		{"half a body", "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{", requestTime},
		{"an idle connection", "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n", idleTime},
	} {
		t.Run(c.name, func(t *testing.T) {
			inPipe(t, fake{}, func(t *testing.T, conn net.Conn) {
				start := time.Now()
				_, err := io.WriteString(conn, c.said)
				must(t, err)
				_, _ = io.Copy(io.Discard, conn) // until the server closes
				if took := time.Since(start); took > c.within {
					t.Errorf("cut off after %v", took)
				}
			})
		})
	}
}

func TestAStatusHasALimit(t *testing.T) {
	sup := fake{status: func(ctx context.Context) (Status, error) {
		<-ctx.Done()
		return Status{}, context.Cause(ctx)
	}}
	inPipe(t, sup, func(t *testing.T, conn net.Conn) {
		_, err := io.WriteString(conn, "GET /v1/status HTTP/1.1\r\nHost: x\r\n\r\n")
		must(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		must(t, err)
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != 503 || string(body) != `{"error":"context deadline exceeded"}`+"\n" {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	})
}
