package envoy

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// B38: skip_exit is refused by some versions.
func TestDrainListenersFallsBackWhereAFormIsUnknown(t *testing.T) {
	for _, c := range []struct {
		graceful, skipExit bool
		refused            string
		want               []string
	}{
		{false, false, "-", []string{""}},
		{true, false, "-", []string{"?graceful"}},
		{true, true, "-", []string{"?graceful&skip_exit"}},
		{true, true, "skip_exit", []string{"?graceful&skip_exit", "?graceful"}},
		{false, true, "-", []string{"?skip_exit"}},
		{false, true, "?skip_exit", []string{"?skip_exit", "?graceful&skip_exit"}},
		{false, true, "skip_exit", []string{"?skip_exit", "?graceful&skip_exit", "?graceful"}},
	} {
		f := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || strings.Contains(r.URL.String(), c.refused) {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		wantNil(t, f.DrainListeners(t.Context(), c.graceful, c.skipExit))
		var want []string
		for _, form := range c.want {
			want = append(want, "POST /drain_listeners"+form)
		}
		if got := f.queries(); !slices.Equal(got, want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
	f := serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 500) })
	wantError(t, f.DrainListeners(t.Context(), true, true), "POST /drain_listeners", "status 500")
	if n := len(f.queries()); n != 1 {
		t.Errorf("asked %d times after an error that isn't 400", n)
	}
}

func TestHealthchecksArePosts(t *testing.T) {
	f := serve(t, says("OK\n"))
	wantNil(t, f.HealthcheckFail(t.Context()))
	wantNil(t, f.HealthcheckOK(t.Context()))
	if got := f.queries(); !slices.Equal(got, []string{"POST /healthcheck/fail", "POST /healthcheck/ok"}) {
		t.Error(got)
	}
}
