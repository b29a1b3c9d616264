package envoy

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpenSocketsCountsConnectionsAtThePorts(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		t.Run(host, func(t *testing.T) {
			l, err := plainTCP(t, host+":0")
			if err != nil {
				t.Skip("no such address here")
			}
			defer l.Close()
			port := l.Addr().(*net.TCPAddr).Port
			watcher := NewSockets(os.Getpid(), map[int]bool{port: true})
			want := func(what string, n int) {
				t.Helper()
				if got, err := OpenSockets(os.Getpid(), map[int]bool{port: true}); got != n || err != nil {
					t.Errorf("%s: %d, %v; want %d", what, got, err, n)
				}
				if got, err := watcher.Count(); got != n || err != nil {
					t.Errorf("%s, by one who has looked before: %d, %v; want %d", what, got, err, n)
				}
			}
			want("a listener only", 0)
			client, server := connect(t, l)
			// Both ends are ours; only the accepted one has the port.
			want("one connection", 1)
			if n, err := OpenSockets(os.Getpid(), map[int]bool{1: true}); n != 0 || err != nil {
				t.Errorf("at another port: %d, %v", n, err)
			}
			again, err := server.(*net.TCPConn).File() // a second descriptor of the same socket
			wantNil(t, err)
			want("one connection, two descriptors", 1)
			again.Close()
			client2, server2 := connect(t, l)
			want("two connections", 2)
			wantNil(t, client.(*net.TCPConn).CloseWrite())
			want("one half-closed by its client", 2)
			wantNil(t, server2.(*net.TCPConn).CloseWrite())
			want("one half-closed by us", 2)
			server.Close()
			client.Close()
			want("one closed", 1)
			server2.Close()
			client2.Close()
			want("both closed, TIME_WAIT left", 0)
			if !watcher.Listening() {
				t.Error("it has a listener")
			}
			l.Close()
			want("the listener closed", 0)
			if watcher.Listening() {
				t.Error("it has no listener any more")
			}
		})
	}
}

// plainTCP is not Go's default: that is MPTCP.
func plainTCP(t *testing.T, address string) (net.Listener, error) {
	t.Helper()
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	return c.Listen(t.Context(), "tcp", address)
}

func connect(t *testing.T, l net.Listener) (client, server net.Conn) {
	t.Helper()
	client, err := net.Dial("tcp", l.Addr().String())
	wantNil(t, err)
	server, err = l.Accept()
	wantNil(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// Idle is what ends an old epoch, so not knowing must not look like it.
func TestOpenSocketsOfAProcessThatIsGone(t *testing.T) {
	if _, err := OpenSockets(1<<22+1, map[int]bool{80: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestOpenSocketsCountsOnlyThatProcess(t *testing.T) {
	l, err := plainTCP(t, "127.0.0.1:0")
	wantNil(t, err)
	defer l.Close()
	connect(t, l)
	n, err := OpenSockets(os.Getppid(), map[int]bool{l.Addr().(*net.TCPAddr).Port: true})
	if err == nil && n != 0 {
		t.Errorf("%d of ours in our parent", n)
	}
}

// What is remembered of a socket must not outlive it.
func TestSocketsRemembersWhatItSaw(t *testing.T) {
	l, err := plainTCP(t, "127.0.0.1:0")
	wantNil(t, err)
	defer l.Close()
	_, server := connect(t, l)
	s := NewSockets(os.Getpid(), map[int]bool{l.Addr().(*net.TCPAddr).Port: true})
	look := func(what string, want int) {
		t.Helper()
		if n, err := s.Count(); n != want || err != nil {
			t.Errorf("%s: %d, %v; want %d", what, n, err, want)
		}
	}
	look("at first", 1)
	s.ports = nil
	look("without reading the tables again", 1)
	server.Close()
	look("closed", 0)
	for inode, f := range s.before {
		if f.mayBe() {
			t.Errorf("%s is still %d", inode, f)
		}
	}
}

// A table that changes while it is read may leave lines out. A socket that none
// has shown counts, until so many have lacked it that it must be in none.
func TestASocketThatNoTableShowsIsNotIdle(t *testing.T) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0) // in no table until it is bound
	wantNil(t, err)
	defer unix.Close(fd)
	s := NewSockets(os.Getpid(), map[int]bool{1: true})
	for look := finding(1); look <= other; look++ {
		want := 1
		if look == other {
			want = 0
		}
		if n, err := s.Count(); n != want || err != nil {
			t.Errorf("look %d: %d, %v; want %d", look, n, err, want)
		}
	}
}

// An upstream connection is known by its own port, and for good.
func TestSocketsAtOtherPortsAreKnownAtOnce(t *testing.T) {
	l, err := plainTCP(t, "127.0.0.1:0")
	wantNil(t, err)
	defer l.Close()
	client, server := connect(t, l)
	defer client.Close()
	defer server.Close()
	s := NewSockets(os.Getpid(), map[int]bool{1: true})
	if n, err := s.Count(); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// MPTCP connections are in no table by their ports: nobody can tell, and that
// must not look like idle.
func TestSocketsOfMPTCPCannotBeCounted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // MPTCP where the kernel has it
	wantNil(t, err)
	defer l.Close()
	file, err := l.(*net.TCPListener).File()
	wantNil(t, err)
	defer file.Close()
	if f, err := byProtocol(fmt.Sprintf("/proc/self/fd/%d", file.Fd())); err == nil {
		t.Skip("no MPTCP here, or no word about it:", f)
	}
	if n, err := OpenSockets(os.Getpid(), map[int]bool{1: true}); !errors.Is(err, ErrUncountable) {
		t.Error(n, err)
	}
}

func TestProtocolSparesTheTables(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	wantNil(t, err)
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	if f, err := byProtocol(fmt.Sprintf("/proc/self/fd/%d", pair[0])); f != other || err != nil {
		t.Errorf("a Unix socket: %d, %v", f, err)
	}
	if f, err := byProtocol("/proc/self/fd/0"); f != unknown || err != nil {
		t.Errorf("no socket: %d, %v", f, err)
	}
}

func TestColumn(t *testing.T) {
	line := []byte("   0: 0100007F:1F90 00000000:0000 0A ")
	for n, want := range []string{"0:", "0100007F:1F90", "00000000:0000", "0A", "", ""} {
		if got, _ := column(line, n); string(got) != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

func BenchmarkOpenSockets(b *testing.B) {
	var plain net.ListenConfig
	plain.SetMultipathTCP(false)
	l, err := plain.Listen(b.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	for range 400 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
	}
	ports := map[int]bool{l.Addr().(*net.TCPAddr).Port: true}
	b.ReportAllocs()
	for b.Loop() {
		if n, err := OpenSockets(os.Getpid(), ports); n != 400 || err != nil {
			b.Fatal(n, err)
		}
	}
}
