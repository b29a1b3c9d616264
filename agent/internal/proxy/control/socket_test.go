package control

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// The socket must not be open to others for a moment, whatever the umask is: a
// look at it in a tight loop, with the widest umask, never sees another mode.
func TestNeverWiderThan0600(t *testing.T) {
	old := unix.Umask(0)
	defer unix.Umask(old)
	path := socketPath(t)
	var stop atomic.Bool
	seen := make(chan map[fs.FileMode]int)
	go func() { // onlooker, joined below
		modes := map[fs.FileMode]int{}
		for !stop.Load() {
			if info, err := os.Lstat(path); err == nil {
				modes[info.Mode()]++
			}
		}
		seen <- modes
	}()
	for range 200 {
		s, err := Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	stop.Store(true)
	modes := <-seen
	delete(modes, fs.ModeSocket|0o600)
	if len(modes) != 0 {
		t.Errorf("other modes than 0600: %v", modes)
	}
	if info, err := os.Stat(path + ".lock"); err != nil || info.Mode() != 0o600 {
		t.Errorf("lock file: %v, %v", info.Mode(), err)
	}
}

func TestDirectoryIsMadeForUsAlone(t *testing.T) {
	path := filepath.Join(filepath.Dir(socketPath(t)), "a", "b", "control.sock")
	listen(t, path)
	for dir := filepath.Dir(path); filepath.Base(dir) != "a"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
}

func TestListenRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		there func(t *testing.T, path string)
		taken bool
		want  string
	}{
		{"a regular file", func(t *testing.T, p string) { must(t, os.WriteFile(p, []byte("mine"), 0o600)) }, false, "there is a regular file of that name"},
		{"a directory", func(t *testing.T, p string) { must(t, os.Mkdir(p, 0o700)) }, false, "there is a directory of that name"},
		{"a pipe", func(t *testing.T, p string) { must(t, unix.Mkfifo(p, 0o600)) }, false, "there is a named pipe of that name"},
		{"a dangling link", func(t *testing.T, p string) { must(t, os.Symlink("/nonexistent", p)) }, false, "there is a symbolic link of that name"},
		{"a live supervisor", func(t *testing.T, p string) { listen(t, p) }, true, "another supervisor (pid " + strconv.Itoa(os.Getpid()) + ")"},
		{"a foreign server", foreign("unix"), true, "somebody answers there (pid " + strconv.Itoa(os.Getpid()) + ")"},
		{"a foreign datagram socket", foreign("unixgram"), true, "isn't a dead one (protocol wrong type for socket)"},
		{"a lock that is a link", func(t *testing.T, p string) { must(t, os.Symlink("/etc/passwd", p+".lock")) }, false, "too many levels of symbolic links"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := socketPath(t)
			c.there(t, path)
			before, _ := os.Lstat(path)
			s, err := Listen(path)
			if err == nil {
				s.Close()
				t.Fatal("taken")
			}
			if !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || errors.Is(err, ErrTaken) != c.taken {
				t.Errorf("%v (taken %v)", err, errors.Is(err, ErrTaken))
			}
			if after, _ := os.Lstat(path); before != nil && !os.SameFile(before, after) {
				t.Error("what was there is gone")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func foreign(network string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		var closer interface{ Close() error }
		var err error
		if network == "unixgram" {
			closer, err = net.ListenPacket(network, path)
		} else {
			closer, err = net.Listen(network, path)
		}
		must(t, err)
		t.Cleanup(func() { closer.Close() })
	}
}

func TestTooLongForASocket(t *testing.T) {
	for _, c := range []struct {
		path string
		want string
	}{
		{"", "has no name"},
		{"/" + strings.Repeat("x", MaxPath), "its name has 108 bytes, but a socket's name can have 107 at most"},
	} {
		if _, err := Listen(c.path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Listen(%q): %v", c.path, err)
		}
	}
	dir := filepath.Dir(socketPath(t)) + "/"
	longest := dir + strings.Repeat("x", MaxPath-len(dir))
	listen(t, longest)
}

func TestADeadSocketIsReplaced(t *testing.T) {
	path := socketPath(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	must(t, err)
	l.SetUnlinkOnClose(false)
	l.Close() // as after a crash
	listen(t, path)
}

func TestOfManyOneGetsIt(t *testing.T) {
	path := socketPath(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	must(t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
	const rivals = 20
	got := make(chan *Server, rivals)
	for range rivals {
		go func() { // rival, joined below
			s, err := Listen(path)
			if err != nil && !errors.Is(err, ErrTaken) {
				t.Error(err)
			}
			got <- s
		}()
	}
	var winners []*Server
	for range rivals {
		if s := <-got; s != nil {
			winners = append(winners, s)
		}
	}
	for _, s := range winners {
		s.Close()
	}
	if len(winners) != 1 {
		t.Errorf("%d of %d have the socket", len(winners), rivals)
	}
}

func TestOnlyOurOwnSocketIsRemoved(t *testing.T) {
	path := socketPath(t)
	s := listen(t, path)
	must(t, os.Remove(path))
	must(t, os.WriteFile(path, []byte("somebody's"), 0o600))
	s.Close()
	if data, err := os.ReadFile(path); err != nil || string(data) != "somebody's" {
		t.Errorf("%q, %v", data, err)
	}
}

// Envoy is forked while the server lives and must inherit neither the socket
// nor the lock, or a dead supervisor would look alive.
func TestDescriptorsAreClosedOnExec(t *testing.T) {
	s := listen(t, socketPath(t))
	flags := func(fd uintptr) (n int) {
		n, err := unix.FcntlInt(fd, unix.F_GETFD, 0)
		must(t, err)
		return n
	}
	raw, err := s.listener.(*net.UnixListener).SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		if flags(fd)&unix.FD_CLOEXEC == 0 {
			t.Error("the socket would be inherited")
		}
	}))
	if flags(s.lock.Fd())&unix.FD_CLOEXEC == 0 {
		t.Error("the lock would be inherited")
	}
}
