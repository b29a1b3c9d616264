package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/envoy"
)

// admin answers like an Envoy with these gauges; info is its /server_info.
func admin(t *testing.T, gauges map[string]int, info string) *envoy.Admin {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/stats":
			items := []string{`{"name": "listener.admin.downstream_cx_active", "value": 1}`}
			for name, n := range gauges {
				items = append(items, fmt.Sprintf(`{"name": "listener.%s.downstream_cx_active", "value": %d}`, name, n))
			}
			fmt.Fprintf(w, `{"stats": [%s]}`, strings.Join(items, ","))
		case "/server_info":
			fmt.Fprint(w, info)
		case "/listeners":
			fmt.Fprint(w, "{}")
		}
	}))
	t.Cleanup(server.Close)
	return adminAt(t, strings.TrimPrefix(server.URL, "http://"))
}

func adminAt(t *testing.T, address string) *envoy.Admin {
	t.Helper()
	a, err := envoy.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	client := envoy.NewAdmin(a)
	t.Cleanup(client.Close)
	return client
}

func info(epoch int, uptime string) string {
	return fmt.Sprintf(`{"version": "x/1.40.0/y", "state": "LIVE", "uptime_current_epoch": %q, "command_line_options": {"restart_epoch": %d, "concurrency": 1}}`, uptime, epoch)
}

func patterns(t *testing.T, include, exclude string) (l Listeners) {
	t.Helper()
	var errs [2]error
	if include != "" {
		l.Include, errs[0] = ListenerPattern(include)
	}
	if exclude != "" {
		l.Exclude, errs[1] = ListenerPattern(exclude)
	}
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestConnectionsOfTheChosenListeners(t *testing.T) {
	gauges := map[string]int{"web": 3, "web2": 5, "0.0.0.0_9102": 7}
	for _, c := range []struct {
		include, exclude string
		want             int
		err              string
	}{
		{want: 15},
		{include: "web", want: 3}, // the whole name
		{include: "web.*", want: 8},
		{exclude: ".*_9102", want: 8},
		{include: "web.*", exclude: "web", want: 5},
		{include: "nothing", err: "none of Envoy's 3 listeners is counted"},
		{exclude: ".*", err: "none of Envoy's 3 listeners is counted"},
	} {
		n, err := NewEnvoy(admin(t, gauges, info(0, "100s")), patterns(t, c.include, c.exclude)).Connections(t.Context())
		if n != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("include %q, exclude %q: %d, %v; want %d, %q", c.include, c.exclude, n, err, c.want, c.err)
		}
	}
}

// A child has its parent's numbers only after its first flush of stats.
func TestAYoungChildsZeroIsNoZero(t *testing.T) {
	for _, c := range []struct {
		connections, epoch int
		uptime             string
		err                bool
	}{
		{0, 0, "1s", false}, {0, 1, "1s", true}, {3, 1, "1s", false}, {0, 1, "30s", false},
	} {
		e := NewEnvoy(admin(t, map[string]int{"web": c.connections}, info(c.epoch, c.uptime)), Listeners{})
		if n, err := e.Connections(t.Context()); (err != nil) != c.err || err == nil && n != c.connections {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
	}
	e := NewEnvoy(admin(t, map[string]int{"web": 0}, "x"), Listeners{})
	if _, err := e.Connections(t.Context()); err == nil {
		t.Error("a zero of who can't say who it is")
	}
}

func TestConnectionsOfNoListenerAtAll(t *testing.T) {
	n, err := NewEnvoy(admin(t, nil, info(0, "1s")), patterns(t, "web", "")).Connections(t.Context())
	if n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestNobodyAtTheAdminIsARefusal(t *testing.T) {
	for _, address := range []string{"127.0.0.1:1", "unix:" + filepath.Join(t.TempDir(), "a")} {
		e := NewEnvoy(adminAt(t, address), Listeners{})
		_, count := e.Connections(t.Context())
		_, ready := e.Ready(t.Context())
		_, undo := e.Undo(t.Context())
		for what, err := range map[string]error{"count": count, "drain": e.Drain(t.Context()), "ready": ready, "undo": undo} {
			if !errors.Is(err, ErrRefused) {
				t.Errorf("%s at %s: %v", what, address, err)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewEnvoy(admin(t, nil, ""), Listeners{}).Connections(ctx); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("our own haste: %v", err)
	}
}
