package real

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"aether.internal/test/node"
)

// serviceManager is a real notify socket, and all that has arrived there.
type serviceManager struct {
	mu   sync.Mutex
	said []string
}

// manage sets the environment as systemd does.
func manage(t *testing.T) *serviceManager {
	t.Helper()
	dir, err := os.MkdirTemp("", "sd") // not the node's, which must be empty at the end
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	m, done := &serviceManager{}, make(chan struct{})
	go func() { // joined by the cleanup
		defer close(done)
		for buffer := make([]byte, 8192); ; {
			n, err := socket.Read(buffer)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.said = append(m.said, string(buffer[:n]))
			m.mu.Unlock()
		}
	}()
	t.Cleanup(func() { socket.Close(); <-done; os.RemoveAll(dir) })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "100000")
	return m
}

// states are the variables but STATUS and WATCHDOG, in their order.
func (m *serviceManager) states() (states []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, message := range m.said {
		for line := range strings.Lines(message) {
			line = strings.TrimSpace(line)
			if !strings.HasPrefix(line, "STATUS=") && line != "WATCHDOG=1" {
				states = append(states, line)
			}
		}
	}
	return states
}

func (m *serviceManager) heard(text string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Count(strings.Join(m.said, "\n")+"\n", text+"\n")
}

func monotonic(t *testing.T) int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	return now.Nano() / 1000
}

// systemd's protocol for Type=notify-reload, with the built agent and a real
// Envoy: started when it serves, a reload that is over when it is, also a refused
// one, and a stop.
func TestAServiceManagerIsToldOfStartReloadAndStop(t *testing.T) {
	s := newStage(t)
	m := manage(t)
	s.start()
	s.until("READY", func() bool { return len(m.states()) > 0 })

	before := monotonic(t)
	s.hup()
	s.await("epoch 1 to serve alone", node.Alone(1))
	s.until("the reload's READY", func() bool { return m.heard("READY=1") == 2 })
	if got := m.states(); len(got) != 4 || got[1] != "RELOADING=1" {
		t.Fatalf("%q", got)
	} else if at, err := strconv.ParseInt(strings.TrimPrefix(got[2], "MONOTONIC_USEC="), 10, 64); err != nil || at < before || at > monotonic(t) {
		t.Errorf("%s, and the signal was sent at %d (%v)", got[2], before, err)
	}

	s.raw(append(s.yaml(), "listenerz: 7\n"...)) // seen by the watcher
	s.until("the refused reload's READY", func() bool { return m.heard("READY=1") == 3 })
	m.mu.Lock()
	last := m.said
	m.mu.Unlock()
	if text := strings.Join(last, "\n"); !strings.Contains(text, "STATUS=serving, epoch 1 serves; epoch 2 failed: validate: ") {
		t.Errorf("the refusal is in no STATUS:\n%s", text)
	}
	s.until("the watchdog to hear from us", func() bool { return m.heard("WATCHDOG=1") > 3 })
	s.signal(syscall.SIGTERM)
	s.exit(0)
	s.until("STOPPING", func() bool { return m.heard("STOPPING=1") == 1 })
	if got := m.states(); got[len(got)-1] != "STOPPING=1" || m.heard("READY=1") != 3 {
		t.Errorf("%q", got)
	}
	s.nothingLeft()
}
