package systemd

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"aether.internal/agent/internal/proxy/hotrestart"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is told, from one notice to the next, in the life of a supervisor.
func TestVariables(t *testing.T) {
	var last hotrestart.Notice
	for _, c := range []struct {
		now  hotrestart.Notice
		want string
	}{
		{hotrestart.Notice{Status: "starting", Wishes: 1}, "STATUS=starting"},
		{hotrestart.Notice{Served: true, Wishes: 1, Status: "serving"}, "READY=1|STATUS=serving"},
		{hotrestart.Notice{Served: true, Wishes: 2, Changing: true, Status: "preparing"}, "RELOADING=1|MONOTONIC_USEC=7|STATUS=preparing"},
		// Another SIGHUP while a handoff is under way is another RELOADING.
		{hotrestart.Notice{Served: true, Wishes: 3, Changing: true, Status: "preparing"}, "RELOADING=1|MONOTONIC_USEC=7"},
		{hotrestart.Notice{Served: true, Wishes: 3, Changing: true, Status: "preparing\nmore"}, "STATUS=preparing more"},
		{hotrestart.Notice{Served: true, Wishes: 3, Status: "serving"}, "READY=1|STATUS=serving"},
		{hotrestart.Notice{Served: true, Wishes: 3, Status: "serving"}, ""},
		{hotrestart.Notice{Served: true, Wishes: 4, Changing: true, Status: "serving"}, "RELOADING=1|MONOTONIC_USEC=7"},
		{hotrestart.Notice{Served: true, Wishes: 4, Stopping: true, Status: "stopping"}, "STOPPING=1|STATUS=stopping"},
		{hotrestart.Notice{Served: true, Wishes: 5, Stopping: true, Status: "stopping"}, ""},
	} {
		if got := strings.ReplaceAll(variables(last, c.now, 7), "\n", "|"); got != c.want {
			t.Errorf("from %+v to %+v: %q, want %q", last, c.now, got, c.want)
		}
		last = c.now
	}
}

// receiver is a service manager's socket.
func receiver(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func receive(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	buffer := make([]byte, 4096)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := c.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

func environment(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
}

func socketName(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "notify")
}

func TestNoticesArriveAtARealSocket(t *testing.T) {
	for _, name := range []string{socketName(t), "@aether-test-" + strconv.Itoa(os.Getpid())} {
		c := receiver(t, name)
		m, err := Open(environment(map[string]string{"NOTIFY_SOCKET": name}))
		if err != nil {
			t.Fatal(err)
		}
		m.Notify(hotrestart.Notice{Served: true, Status: "serving"})
		m.Notify(hotrestart.Notice{Served: true, Status: "serving"})
		m.Notify(hotrestart.Notice{Served: true, Stopping: true, Status: "stopping"})
		m.Close()
		for _, want := range []string{"READY=1\nSTATUS=serving", "STOPPING=1\nSTATUS=stopping"} {
			if got := receive(t, c); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
	}
}

// The watchdog hears from us while we decide, and no longer.
func TestTheWatchdogHearsOnlyOfTheLiving(t *testing.T) {
	name := socketName(t)
	c := receiver(t, name)
	m, err := Open(environment(map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	m.Watch(ctx, func(context.Context) error {
		switch asked++; asked {
		case 1, 2:
			return nil
		case 5:
			cancel()
		}
		return errors.New("no answer")
	})
	m.Close()
	for range 2 {
		if got := receive(t, c); got != "WATCHDOG=1" {
			t.Error(got)
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := c.Read(make([]byte, 64)); err == nil {
		t.Errorf("%d bytes although nobody answered", n)
	}
}

// A manager that reads nothing fills its socket, and is not waited for.
func TestAManagerThatReadsNothingIsNotWaitedFor(t *testing.T) {
	name := socketName(t)
	receiver(t, name)
	m, err := Open(environment(map[string]string{"NOTIFY_SOCKET": name}))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for i := range 10_000 {
		m.Notify(hotrestart.Notice{Status: strconv.Itoa(i)})
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("10,000 notices took %v", took)
	}
	start = time.Now()
	m.Close()
	if took := time.Since(start); took > 4*sendTime {
		t.Errorf("the end took %v", took)
	}
}

func TestOpen(t *testing.T) {
	name := socketName(t)
	receiver(t, name)
	for _, c := range []struct {
		env      map[string]string
		watchdog time.Duration
		nobody   bool
		err      string
	}{
		{env: nil, nobody: true},
		{env: map[string]string{"NOTIFY_SOCKET": ""}, nobody: true},
		{env: map[string]string{"NOTIFY_SOCKET": "vsock:2:1234"}, err: "neither a path nor an abstract socket"},
		{env: map[string]string{"NOTIFY_SOCKET": name + ".gone"}, err: "no such file"},
		{env: map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000"}, watchdog: 30 * time.Second},
		{env: map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}},
		{env: map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "soon"}, err: "WATCHDOG_USEC=soon is no number"},
		{env: map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "0"}, err: "is no number"},
	} {
		m, err := Open(environment(c.env))
		if c.err == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) || (m == nil) != (c.nobody || c.err != "") || m != nil && m.watchdog != c.watchdog {
			t.Errorf("%v: %+v, %v", c.env, m, err)
		}
		m.Watch(canceled(t), func(context.Context) error { return nil })
		m.Close()
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
