package control

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestStatusComesAcrossWhole(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := Status{
		Version: "1.2", PID: 7, BaseID: 3, Mode: ModeRelay, State: Preparing, Ready: true, Serving: 4,
		Epochs: []EpochStatus{{
			Epoch: 4, PID: 70, State: Serving, StartedAt: at, AgeSeconds: 1.5, TimeLeftSeconds: None,
			Connections: None, EnvoyVersion: "1.40.0", HotRestartVersion: "11.104", ConfigHash: "ab", BinaryHash: "cd",
		}},
		Pending:     &PendingStatus{Triggers: []string{"signal"}, Force: true, Since: at, WaitsFor: "epoch 2"},
		LastFailure: &FailureStatus{At: at, Epoch: 5, Step: "verify", Error: "no listener", Log: []string{"a", "b"}},
		LastHandoff: &HandoffStatus{At: at, From: 3, To: 4, Milliseconds: StepTimes{1, 2, 3}},
		Concurrency: 2, ConfigPath: "/c", EnvoyPath: "/e", AdminAddress: "unix:/a",
	}
	path, _ := serve(t, fake{status: func(context.Context) (Status, error) { return want, nil }})
	c := client(t, path)
	for range 2 { // the second on the same connection
		if got, err := c.Status(t.Context()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

func TestReloadComesAcrossWhole(t *testing.T) {
	asked := make(chan ReloadRequest, 1)
	want := ReloadResult{Outcome: Failed, Epoch: 2, Error: "epoch 2: not LIVE", Log: []string{"x"}, Duration: 1500 * time.Microsecond}
	path, _ := serve(t, fake{reload: func(_ context.Context, req ReloadRequest) (ReloadResult, error) {
		asked <- req
		return want, nil
	}})
	got, err := client(t, path).Reload(t.Context(), ReloadRequest{Force: true, Wait: true})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if req := <-asked; req != (ReloadRequest{Force: true, Wait: true}) {
		t.Errorf("%+v", req)
	}
}

func TestReloadResultHasMillisecondsInJSON(t *testing.T) {
	data, err := json.Marshal(ReloadResult{Outcome: Committed, Epoch: 1, Duration: 172349 * time.Microsecond})
	if want := `{"outcome":"committed","epoch":1,"duration_ms":172.3}`; err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}

func TestAcceptedIs202(t *testing.T) {
	path, _ := serve(t, fake{})
	resp, body := raw(t, path, "POST /v1/reload HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
	if resp.StatusCode != http.StatusAccepted || !strings.Contains(body, `"accepted"`) {
		t.Error(resp.StatusCode, body)
	}
}

func TestNoSupervisor(t *testing.T) {
	for _, c := range []struct {
		name  string
		there func(t *testing.T, path string)
		want  string
	}{
		{"nothing there", func(*testing.T, string) {}, "there is no such socket"},
		{"a regular file", func(t *testing.T, p string) { must(t, os.WriteFile(p, nil, 0o600)) }, "dead"},
		{"a dead socket", func(t *testing.T, p string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p})
			must(t, err)
			l.SetUnlinkOnClose(false)
			l.Close()
		}, "dead"},
		{"one that hangs up", answers(""), "ended before its answer"},
		{"one that speaks something else", answers("220 smtp ready\r\n"), "malformed HTTP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := socketPath(t)
			c.there(t, path)
			_, err := client(t, path).Status(t.Context())
			if !errors.Is(err, ErrNoSupervisor) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Error(err)
			}
		})
	}
}

// answers is somebody who says the same to everyone and hangs up.
func answers(text string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		l, err := net.Listen("unix", path)
		must(t, err)
		done := make(chan struct{})
		go func() { // the somebody, joined by the cleanup
			defer close(done)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, text)
				conn.Close()
			}
		}()
		t.Cleanup(func() { l.Close(); <-done })
	}
}

func TestAnswersThatArentOurs(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"an older supervisor", "HTTP/1.1 404 Not Found\r\nContent-Length: 32\r\n\r\n" + `{"error":"no such path: /v1/st"}`, "no such path: /v1/st"},
		{"another server", "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", "answered 403 Forbidden"},
		{"an HTML page", "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", "isn't its JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := socketPath(t)
			answers(c.answer)(t, path)
			_, err := client(t, path).Status(t.Context())
			if err == nil || errors.Is(err, ErrNoSupervisor) || !strings.Contains(err.Error(), c.want) {
				t.Error(err)
			}
		})
	}
}

func TestAClientsPatienceEnds(t *testing.T) {
	path, _ := serve(t, fake{reload: func(ctx context.Context, _ ReloadRequest) (ReloadResult, error) {
		<-ctx.Done()
		return ReloadResult{}, ctx.Err()
	}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client(t, path).Reload(ctx, ReloadRequest{Wait: true})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrNoSupervisor) {
		t.Error(err)
	}
}
