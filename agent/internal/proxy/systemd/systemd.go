// Package systemd tells a service manager how the supervisor is, by sd_notify: a
// datagram of variables to $NOTIFY_SOCKET.
package systemd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"aether.internal/agent/internal/proxy/hotrestart"
)

// Manager is whoever listens at the notify socket. A nil *Manager is nobody.
// Notify may be called by one goroutine.
type Manager struct {
	socket   *net.UnixConn
	queue    chan string
	sent     chan struct{}
	watchdog time.Duration

	last hotrestart.Notice
}

const (
	// A manager reads at once. One that doesn't is not waited for: our owner has
	// an Envoy to supervise, and a plain write to a full socket would block.
	sendTime  = time.Second
	queueSize = 64
)

// Open returns nil when $NOTIFY_SOCKET names nobody.
func Open(lookup func(string) (string, bool)) (*Manager, error) {
	path, _ := lookup("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%s is neither a path nor an abstract socket", path)
	}
	socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // "@" is abstract here as well
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	watchdog, err := watchdogOf(lookup)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	m := &Manager{socket: socket, queue: make(chan string, queueSize), sent: make(chan struct{}), watchdog: watchdog}
	go m.send() // ends with Close
	return m, nil
}

// watchdogOf is how often the manager wants to hear from us, 0 for never.
func watchdogOf(lookup func(string) (string, bool)) (time.Duration, error) {
	usec, _ := lookup("WATCHDOG_USEC")
	if pid, set := lookup("WATCHDOG_PID"); usec == "" || set && pid != strconv.Itoa(unix.Getpid()) {
		return 0, nil // it is meant for another process
	}
	n, err := strconv.ParseUint(usec, 10, 52)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("WATCHDOG_USEC=%s is no number of microseconds", usec)
	}
	return time.Duration(n) * time.Microsecond, nil
}

func (m *Manager) send() {
	defer close(m.sent)
	for message := range m.queue {
		_ = m.socket.SetWriteDeadline(time.Now().Add(sendTime))
		if _, err := m.socket.Write([]byte(message)); err != nil {
			m.discard() // gone, or stopped: what it missed is old by the time it reads again
		}
	}
}

func (m *Manager) discard() {
	for {
		select {
		case _, open := <-m.queue:
			if !open {
				return
			}
		default:
			return
		}
	}
}

func (m *Manager) put(message string) {
	select {
	case m.queue <- message:
	default: // nobody reads
	}
}

// Notify tells how the supervisor is. It never blocks.
func (m *Manager) Notify(now hotrestart.Notice) {
	var clock unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &clock) // never fails for this clock
	if message := variables(m.last, now, clock.Nano()/1000); message != "" {
		m.put(message)
	}
	m.last = now
}

// variables are what has changed, as sd_notify(3) names it; monotonic is in
// microseconds. Each wish is a RELOADING of its own: a manager that has just sent
// SIGHUP takes none that is older than its signal.
func variables(last, now hotrestart.Notice, monotonic int64) string {
	var v []string
	switch {
	case now.Stopping:
		if !last.Stopping {
			v = append(v, "STOPPING=1")
		}
	case now.Changing && (!last.Changing || now.Wishes != last.Wishes):
		v = append(v, "RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic))
	case now.Served && !now.Changing && (!last.Served || last.Changing):
		v = append(v, "READY=1")
	}
	if now.Status != last.Status {
		v = append(v, "STATUS="+strings.ReplaceAll(now.Status, "\n", " "))
	}
	return strings.Join(v, "\n")
}

// Watch tells the watchdog that we live, twice in each of its periods, as long as
// alive says so: it asks the one goroutine that decides everything. It returns
// when ctx ends, at once when there is no watchdog.
func (m *Manager) Watch(ctx context.Context, alive func(context.Context) error) {
	if m == nil || m.watchdog == 0 {
		return
	}
	tick := time.NewTicker(m.watchdog / 2)
	defer tick.Stop()
	for {
		if alive(ctx) == nil {
			m.put("WATCHDOG=1")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Close sends what is left and closes the socket. Neither Notify nor Watch may
// be running.
func (m *Manager) Close() {
	if m == nil {
		return
	}
	close(m.queue)
	<-m.sent
	_ = m.socket.Close()
}
