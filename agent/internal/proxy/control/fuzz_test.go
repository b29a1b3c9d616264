package control

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// Nothing is done but what was asked for in the right way, and every answer is
// one JSON value, with a sentence where it is a refusal.
func FuzzRequest(f *testing.F) {
	f.Add("POST", reloadPath, []byte(`{"force":true,"wait":true}`))
	f.Add("POST", reloadPath, []byte{})
	f.Add("POST", reloadPath, []byte(`{"forse":true}`))
	f.Add("POST", reloadPath, []byte(`{}{}`))
	f.Add("POST", reloadPath, []byte(` `))
	f.Add("GET", reloadPath, []byte{})
	f.Add("GET", statusPath, []byte{})
	f.Add("GET", drainPath, []byte{})
	f.Add("POST", undrainPath, []byte(`{}`))
	f.Add("GET", historyPath, []byte{})
	f.Add("POST", upgradePath, []byte(`{"path":"/agent","check":true}`))
	f.Add("POST", upgradePath, []byte(`{"paht":"/agent"}`))
	f.Add("GET", upgradePath, []byte{})
	f.Add("GET", logPath, []byte(`{"level":"debug"}`))
	f.Add("POST", logPath, []byte(`{"level":"debug"}`))
	f.Add("get", "/v1/status/", []byte{})
	f.Add("HEAD", "/\xff\"<", []byte(strings.Repeat("[", maxBody)))
	f.Add("POST", reloadPath, []byte(strings.Repeat(" ", maxBody+1)))
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		sup := &counting{}
		w := httptest.NewRecorder()
		handler{routes(sup)}.ServeHTTP(w, &http.Request{
			Method: method, URL: &url.URL{Path: path}, Body: io.NopCloser(bytes.NewReader(body)), Header: http.Header{},
		})
		checkReply(t, w)
		asked := method == http.MethodPost && path == reloadPath
		var req ReloadRequest
		sane := len(body) <= maxBody && (len(body) == 0 || json.Unmarshal(body, &req) == nil && onlyWishes(body))
		if len(sup.reloads) > 1 || len(sup.reloads) == 1 && !(asked && sane && sup.reloads[0] == req) {
			t.Errorf("%s %q %q: reloads %+v", method, path, body, sup.reloads)
		}
		if done := w.Code < 300; done != (len(sup.reloads)+sup.looks+sup.acts == 1) {
			t.Errorf("%s %q %q: %d, %d reloads, %d looks", method, path, body, w.Code, len(sup.reloads), sup.looks)
		}
		if method == http.MethodGet && len(sup.reloads)+sup.acts > 0 {
			t.Error("a GET acted")
		}
	})
}

// onlyWishes is true when nothing is asked for that doesn't exist.
func onlyWishes(body []byte) bool {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return false
	}
	for name := range fields {
		if !strings.EqualFold(name, "force") && !strings.EqualFold(name, "wait") {
			return false
		}
	}
	return true
}

func checkReply(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	body := w.Body.Bytes()
	if !json.Valid(body) || w.Header().Get("Content-Type") != "application/json" || len(body) > 8*maxBody+4096 {
		t.Errorf("%d: %d bytes of %q: %.200q", w.Code, len(body), w.Header().Get("Content-Type"), body)
	}
	switch w.Code {
	case http.StatusOK, http.StatusAccepted:
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge:
		var no refusal
		if json.Unmarshal(body, &no) != nil || no.Error == "" {
			t.Errorf("%d without a sentence: %.200q", w.Code, body)
		}
	default:
		t.Errorf("status %d: %.200q", w.Code, body)
	}
}

// counting is a Supervisor that remembers what it was asked.
type counting struct {
	reloads []ReloadRequest
	looks   int
	acts    int // of other kinds
}

func (c *counting) Drain(context.Context, bool) (DrainResult, error) {
	c.acts++
	return DrainResult{}, nil
}

func (c *counting) Upgrade(context.Context, UpgradeRequest) (UpgradeResult, error) {
	c.acts++
	return UpgradeResult{Outcome: Refused}, nil
}

func (c *counting) History(context.Context) (History, error) {
	c.looks++
	return History{}, nil
}

func (c *counting) Doctor(context.Context) (Diagnosis, error) {
	c.looks++
	return Diagnosis{}, nil
}

func (c *counting) SetLog(_ context.Context, level LogLevel) (LogLevel, error) {
	if level.Level == "" {
		c.looks++
	} else {
		c.acts++
	}
	return level, nil
}

func (c *counting) Status(context.Context) (Status, error) {
	c.looks++
	return Status{Serving: None}, nil
}

func (c *counting) Reload(_ context.Context, req ReloadRequest) (ReloadResult, error) {
	c.reloads = append(c.reloads, req)
	if req.Wait {
		return ReloadResult{Outcome: Committed}, nil
	}
	return ReloadResult{Outcome: Accepted}, nil
}

// What a client reads is a whole answer or an error, whoever is at the socket.
func FuzzAnswer(f *testing.F) {
	f.Add(200, []byte(`{"outcome":"committed","epoch":3,"duration_ms":512.3,"log":["a"]}`))
	f.Add(200, []byte(`{"serving":-1,"epochs":[{"epoch":1}],"pending":{"triggers":["config"],"since":"2026-11-30T12:00:00Z"}}`))
	f.Add(202, []byte(`{"duration_ms":1e300}`))
	f.Add(200, []byte(`{"epochs":null}{}`))
	f.Add(503, []byte(`{"error":"the supervisor is stopping"}`))
	f.Add(500, []byte(`<html>`))
	f.Fuzz(func(t *testing.T, code int, body []byte) {
		c := &Client{path: "/fuzz"}
		resp := &http.Response{StatusCode: code, Status: http.StatusText(code)}
		var res ReloadResult
		if err := c.decode(resp, body, &res); err == nil {
			if code/100 != 2 {
				t.Errorf("%d is taken for a success", code)
			}
			readAgain(t, res)
		}
		var st Status
		if err := c.decode(resp, body, &st); err == nil {
			readAgain(t, st)
		}
	})
}

// readAgain: what was read can be written, and then stays what it is.
func readAgain[T any](t *testing.T, value T) {
	t.Helper()
	first, err := json.Marshal(value)
	if err != nil {
		t.Fatalf("%+v can't be written: %v", value, err)
	}
	var back T
	if err := json.Unmarshal(first, &back); err != nil {
		t.Fatalf("%s can't be read: %v", first, err)
	}
	if second, err := json.Marshal(back); err != nil || !bytes.Equal(first, second) {
		t.Errorf("%s became %s, %v", first, second, err)
	}
}
