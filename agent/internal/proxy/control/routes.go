package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// route answers one path, by method. Its value goes out as JSON.
type route map[string]func(r *http.Request, body []byte) (code int, value any)

// Paths of the API. Later ones get a line each in routes.
const (
	statusPath = "/v1/status"
	reloadPath = "/v1/reload"
	logPath    = "/v1/log"

	upgradePath = "/v1/upgrade"
	historyPath = "/v1/history"
	doctorPath  = "/v1/doctor"
	drainPath   = "/v1/drain"
	undrainPath = "/v1/undrain"
)

func routes(sup Supervisor) map[string]route {
	return map[string]route{
		statusPath:  {http.MethodGet: func(r *http.Request, _ []byte) (int, any) { return status(r.Context(), sup) }},
		reloadPath:  {http.MethodPost: func(r *http.Request, body []byte) (int, any) { return reload(r.Context(), sup, body) }},
		upgradePath: {http.MethodPost: func(r *http.Request, body []byte) (int, any) { return upgrade(r.Context(), sup, body) }},
		historyPath: {http.MethodGet: ask(sup.History)},
		doctorPath:  {http.MethodGet: ask(sup.Doctor)},
		drainPath:   {http.MethodPost: ask(func(ctx context.Context) (DrainResult, error) { return sup.Drain(ctx, true) })},
		undrainPath: {http.MethodPost: ask(func(ctx context.Context) (DrainResult, error) { return sup.Drain(ctx, false) })},
		logPath: {
			http.MethodGet:  func(r *http.Request, _ []byte) (int, any) { return setLog(r.Context(), sup, nil) },
			http.MethodPost: func(r *http.Request, body []byte) (int, any) { return setLog(r.Context(), sup, body) },
		},
	}
}

// refusal is the body of every answer that isn't the one asked for.
type refusal struct {
	Error string `json:"error"`
}

func refuse(code int, format string, args ...any) (int, any) {
	return code, refusal{fmt.Sprintf(format, args...)}
}

func status(ctx context.Context, sup Supervisor) (int, any) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	st, err := sup.Status(ctx)
	if err != nil {
		return unavailable(ctx, err)
	}
	if st.Epochs == nil {
		st.Epochs = []EpochStatus{} // a list in JSON, not null
	}
	return http.StatusOK, st
}

func reload(ctx context.Context, sup Supervisor, body []byte) (int, any) {
	var req ReloadRequest
	if err := decode(body, &req); err != nil {
		return refuse(http.StatusBadRequest, "reload: the request's body: %v", err)
	}
	res, err := sup.Reload(ctx, req)
	if err != nil {
		return unavailable(ctx, err)
	}
	if res.Outcome == Accepted {
		return http.StatusAccepted, res
	}
	return http.StatusOK, res
}

func upgrade(ctx context.Context, sup Supervisor, body []byte) (int, any) {
	var req UpgradeRequest
	if err := decode(body, &req); err != nil {
		return refuse(http.StatusBadRequest, "upgrade: the request's body: %v", err)
	}
	res, err := sup.Upgrade(ctx, req)
	if err != nil {
		return unavailable(ctx, err)
	}
	if res.Outcome == Accepted {
		return http.StatusAccepted, res
	}
	return http.StatusOK, res
}

// ask answers what needs no body and is done at once.
func ask[T any](do func(context.Context) (T, error)) func(*http.Request, []byte) (int, any) {
	return func(r *http.Request, _ []byte) (int, any) {
		ctx, cancel := context.WithTimeout(r.Context(), answerTime)
		defer cancel()
		answer, err := do(ctx)
		if err != nil {
			return unavailable(ctx, err)
		}
		return http.StatusOK, answer
	}
}

// setLog sets the level that body asks for; without one it only tells.
func setLog(ctx context.Context, sup Supervisor, body []byte) (int, any) {
	var level LogLevel
	if err := decode(body, &level); err != nil {
		return refuse(http.StatusBadRequest, "log: the request's body: %v", err)
	}
	now, err := sup.SetLog(ctx, level)
	if err != nil {
		return refuse(http.StatusBadRequest, "%v", err)
	}
	return http.StatusOK, now
}

// unavailable answers for a supervisor that could not. A context that was
// cancelled means that it stops, or that nobody will read this anyway.
func unavailable(ctx context.Context, err error) (int, any) {
	if errors.Is(ctx.Err(), context.Canceled) {
		return refuse(http.StatusServiceUnavailable, "the supervisor is stopping")
	}
	return refuse(http.StatusServiceUnavailable, "%v", err)
}

type handler struct{ routes map[string]route }

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	code, value := h.answer(w, r)
	reply(w, code, value)
}

func (h handler) answer(w http.ResponseWriter, r *http.Request) (int, any) {
	body, err := read(w, r)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "the request's body is larger than %d bytes", maxBody)
	case err != nil:
		return refuse(http.StatusBadRequest, "the request's body did not arrive: %v", err)
	}
	rt, known := h.routes[r.URL.Path]
	if !known {
		return refuse(http.StatusNotFound, "no such path: %s", r.URL.Path)
	}
	serve := rt[r.Method]
	if serve == nil {
		// A GET must never act: it is what a browser, a prefetch or a probe sends.
		methods := strings.Join(slices.Sorted(maps.Keys(rt)), ", ")
		w.Header().Set("Allow", methods)
		return refuse(http.StatusMethodNotAllowed, "%s takes %s only, not %s", r.URL.Path, methods, r.Method)
	}
	return serve(r, body)
}

func reply(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		code, data = http.StatusInternalServerError, []byte(`{"error":"the answer can't be written as JSON"}`)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // a client that has gone needs no answer
}
