package envoy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fake is an admin that answers what the test says.
type fake struct {
	*Admin
	asked chan string // "GET /path?query" of each query
	dials atomic.Int32
}

// serve answers with handler at a Unix socket.
func serve(t *testing.T, handler http.HandlerFunc) *fake {
	t.Helper()
	path := filepath.Join(shortDir(t), "admin")
	l, err := net.Listen("unix", path)
	wantNil(t, err)
	return serveOn(t, l, Address{Path: path}, handler)
}

func serveOn(t *testing.T, l net.Listener, a Address, handler http.HandlerFunc) *fake {
	f := &fake{Admin: NewAdmin(a), asked: make(chan string, 100)}
	server := &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			f.asked <- r.Method + " " + r.URL.String()
			handler(w, r)
		}),
		ConnState: func(_ net.Conn, s http.ConnState) {
			if s == http.StateNew {
				f.dials.Add(1)
			}
		},
	}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }() // ends with Close below
	t.Cleanup(func() { f.Close(); server.Close(); <-done })
	return f
}

func (f *fake) queries() []string {
	var all []string
	for len(f.asked) > 0 {
		all = append(all, <-f.asked)
	}
	return all
}

// shortDir is short enough for a socket's path, which t.TempDir isn't.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e")
	wantNil(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

const info = `{"version": "9e55/1.40.0/Clean/RELEASE/BoringSSL", "state": "LIVE", "uptime_current_epoch": "61s",
 "hot_restart_version": "11.104", "command_line_options": {"restart_epoch": 7, "concurrency": 2, "x": [1]}, "node": {}}`

func TestServerInfo(t *testing.T) {
	want := ServerInfo{State: "LIVE", Epoch: 7, Version: "1.40.0", HotRestartVersion: "11.104", Concurrency: 2, Uptime: 61 * time.Second}
	got, err := serve(t, says(info)).ServerInfo(t.Context())
	if err != nil || got != want {
		t.Errorf("unix: %+v, %v", got, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNil(t, err)
	a, err := ParseAddress(l.Addr().String())
	wantNil(t, err)
	if got, err = serveOn(t, l, a, says(info)).ServerInfo(t.Context()); err != nil || got != want {
		t.Errorf("tcp: %+v, %v", got, err)
	}
}

// Rule 12: who is there is asked on a fresh connection, liveness on a pooled one.
func TestRule12IdentityIsAskedOnAFreshConnection(t *testing.T) {
	f := serve(t, says(info))
	for range 3 {
		if _, err := f.ServerInfo(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := f.dials.Load(); n != 3 {
		t.Errorf("%d connections for 3 × ServerInfo", n)
	}
	for range 3 {
		if _, err := f.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := f.dials.Load(); n != 4 {
		t.Errorf("%d connections more for 3 × Ready, want 1", n-3)
	}
}

// A GET whose connection was closed is repeated by net/http on a new one,
// where by now the other epoch may answer.
func TestRule12AnswersOfTwoEpochsAreNeverMixed(t *testing.T) {
	var epoch atomic.Int32
	var next int32 // what each connection adds to the epoch
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.URL.Path == "/server_info" {
			fmt.Fprintf(w, `{"state": "LIVE", "command_line_options": {"restart_epoch": %d}}`, epoch.Add(next))
			return
		}
		dynamicEnvoy(w, r)
	})
	if got, err := f.Resources(t.Context(), true); err != nil || len(got.Active) != 3 || !got.Connected {
		t.Errorf("one epoch that closes each connection: %+v, %v", got, err)
	}
	next = 1
	if got, err := f.Resources(t.Context(), true); !errors.Is(err, errOtherEpoch) || got.Active != nil {
		t.Errorf("two epochs: %+v, %v", got, err)
	}
}

func TestReadyTellsStatesThatAreNotLive(t *testing.T) {
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "PRE_INITIALIZING\n")
	})
	if got, err := f.Ready(t.Context()); got != "PRE_INITIALIZING" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Envoy lists all its extensions behind the few lines that are wanted: 120 kB
// for each question, of which nothing is decoded.
func TestServerInfoReadsNoFurtherThanItMust(t *testing.T) {
	head, _, _ := strings.Cut(info, `"node"`)
	f := serve(t, says(head+`"node": {"extensions": [`+strings.Repeat(" ", infoLimit)))
	if got, err := f.ServerInfo(t.Context()); err != nil || got.State != "LIVE" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Each way in which an admin can fail to answer is an error that names the
// admin, the query and the evidence.
func TestAdminErrorsNameQueryAndEvidence(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		words   []string
	}{
		"not JSON":       {says("no healthy upstream"), []string{"not complete JSON"}},
		"cut short":      {says(info[:len(info)-20]), []string{"not complete JSON"}},
		"another server": {says(`{"status": "ok"}`), []string{"not Envoy's"}},
		"empty":          {says(""), []string{"not complete JSON"}},
		"404": {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "invalid path\nmore", 404) },
			[]string{"status 404", "invalid path"}},
		"redirect": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/else", http.StatusFound) }, []string{"status 302"}},
		"too large": {func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"version": "`+strings.Repeat("x", infoLimit)+`"}`)
		}, []string{"too large"}},
		"connection lost": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"EOF"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, c.handler)
			_, err := f.ServerInfo(t.Context())
			wantError(t, err, append(c.words, "admin unix:", "GET /server_info")...)
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("several lines: %q", err)
			}
		})
	}
}

func TestAdminThatIsNotThere(t *testing.T) {
	a := NewAdmin(Address{Path: filepath.Join(shortDir(t), "none")})
	_, err := a.ServerInfo(t.Context())
	wantError(t, err, "GET /server_info", "no such file")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNil(t, err)
	gone, _ := ParseAddress(l.Addr().String())
	l.Close()
	if _, err := NewAdmin(gone).Ready(t.Context()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
}

// A silent admin costs 5 s, whatever the caller's context allows, and less if
// it allows less.
func TestAdminCallsHaveDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		a := NewAdmin(Address{Path: "/silent"})
		defer a.Close()
		a.pooled.Transport.(*http.Transport).DialContext = hang
		began := time.Now()
		_, err := a.Ready(t.Context())
		wantError(t, err, "no answer within 5s", "GET /ready")
		if took := time.Since(began); took != answerWithin || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("took %v: %v", took, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = a.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 6*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
