package envoy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// How long an answer may take even when the caller's context allows more, and
// how big it may be.
const (
	answerWithin = 5 * time.Second
	dumpWithin   = 10 * time.Second // the main thread also builds the dump
	answerLimit  = 1 << 20
	infoLimit    = 4 << 20   // /server_info lists every extension, and may carry metadata
	listLimit    = 64 << 20  // one entry per listener, or per listener and worker
	dumpLimit    = 256 << 20 // read as a stream, never held in memory as a whole
)

// Admin asks one Envoy's admin interface. It is safe for concurrent use.
//
// Only Ready uses a connection that stays open. Everything else asks on a
// fresh one: a draining parent keeps answering LIVE, with its old epoch, on
// connections it already has (rule 12).
type Admin struct {
	address Address
	pooled  *http.Client
	details atomic.Pointer[map[string]Listener] // of dynamic listeners, by version; see dynamicListeners
}

// NewAdmin makes no connection yet.
func NewAdmin(a Address) *Admin {
	return &Admin{address: a, pooled: client(a, anyNumberOfDials)}
}

// Address is where the admin is asked.
func (a *Admin) Address() Address { return a.address }

// Close drops the pooled connection, and a dial in progress. Other calls in
// progress are not cut.
func (a *Admin) Close() { a.pooled.CloseIdleConnections() }

// ServerInfo is what an Envoy says of itself.
type ServerInfo struct {
	State             string // LIVE, DRAINING, PRE_INITIALIZING, INITIALIZING
	Epoch             int
	Version           string // as in "1.40.0"
	HotRestartVersion string // as in "11.104"
	Concurrency       int
	Uptime            time.Duration // of this epoch, whole seconds
}

// ServerInfo asks who is there, always on a fresh connection (rule 12).
func (a *Admin) ServerInfo(ctx context.Context) (ServerInfo, error) {
	s := a.session()
	defer s.close()
	return s.serverInfo(ctx)
}

func (s *session) serverInfo(ctx context.Context) (ServerInfo, error) {
	var version, state, uptime, hot string
	var options *struct {
		Epoch       int `json:"restart_epoch"`
		Concurrency int `json:"concurrency"`
	}
	err := s.get(ctx, query{path: "/server_info", limit: infoLimit}, func(r answer) error {
		// What follows these, every extension there is, is 98 % of the answer.
		if err := r.members(map[string]any{
			"version": &version, "state": &state, "uptime_current_epoch": &uptime,
			"hot_restart_version": &hot, "command_line_options": &options,
		}); err != nil {
			return err
		}
		// Epoch 0 must never be concluded from something that isn't Envoy.
		if state == "" || options == nil {
			return errors.New("the answer is not Envoy's: state or restart_epoch is missing")
		}
		if options.Epoch < 0 || options.Concurrency < 0 {
			return fmt.Errorf("the answer is not Envoy's: restart_epoch %d, concurrency %d", options.Epoch, options.Concurrency)
		}
		return nil
	})
	if err != nil {
		return ServerInfo{}, err
	}
	running, _ := time.ParseDuration(uptime) // for people only
	return ServerInfo{
		State: state, Epoch: options.Epoch, Version: release(version), HotRestartVersion: hot,
		Concurrency: options.Concurrency, Uptime: max(running, 0),
	}, nil
}

// Ready is the state that /ready tells ("LIVE", "PRE_INITIALIZING", …), on a
// pooled connection (a tenth of a fresh one's price, fact 23). A state other
// than LIVE is an answer, not an error.
func (a *Admin) Ready(ctx context.Context) (string, error) {
	var state string
	q := query{path: "/ready", limit: answerLimit, status: []int{http.StatusOK, http.StatusServiceUnavailable}}
	err := a.ask(ctx, a.pooled, q, func(r answer) error {
		body, err := r.text()
		state = strings.TrimSpace(body)
		return err
	})
	return state, err
}

// DrainListeners asks Envoy to drain. Plain: its listeners close at once.
// Graceful: answers carry "connection: close", and the listeners close after
// the drain time. With skipExit too they stay open (fact 11, B37).
//
// An Envoy that doesn't know a form answers 400; then the nearest form that
// it knows and that closes no more than wished at once is used (B38).
func (a *Admin) DrainListeners(ctx context.Context, graceful, skipExit bool) error {
	var err error
	for _, form := range drainForms(graceful, skipExit) {
		err = a.post(ctx, "/drain_listeners"+form)
		if !isStatus(err, http.StatusBadRequest) {
			return err
		}
	}
	return err
}

func drainForms(graceful, skipExit bool) []string {
	switch {
	case graceful && skipExit:
		return []string{"?graceful&skip_exit", "?graceful"}
	case skipExit: // alone it was refused before 1.40
		return []string{"?skip_exit", "?graceful&skip_exit", "?graceful"}
	case graceful:
		return []string{"?graceful"}
	}
	return []string{""}
}

// HealthcheckFail makes /ready answer 503 and DRAINING.
func (a *Admin) HealthcheckFail(ctx context.Context) error { return a.post(ctx, "/healthcheck/fail") }

// HealthcheckOK undoes HealthcheckFail.
func (a *Admin) HealthcheckOK(ctx context.Context) error { return a.post(ctx, "/healthcheck/ok") }

func (a *Admin) post(ctx context.Context, path string) error {
	s := a.session()
	defer s.close()
	q := query{method: http.MethodPost, path: path, limit: answerLimit}
	return s.get(ctx, q, func(r answer) error { _, err := r.text(); return err })
}
