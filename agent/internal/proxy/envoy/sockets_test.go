package envoy

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"testing"
)

func TestOpenSocketsCountsConnectionsAtThePorts(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]"} {
		t.Run(host, func(t *testing.T) {
			l, err := net.Listen("tcp", host+":0")
			if err != nil {
				t.Skip("no such address here")
			}
			defer l.Close()
			port := l.Addr().(*net.TCPAddr).Port
			want := func(what string, n int) {
				t.Helper()
				if got, err := OpenSockets(os.Getpid(), map[int]bool{port: true}); got != n || err != nil {
					t.Errorf("%s: %d, %v; want %d", what, got, err, n)
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
		})
	}
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	wantNil(t, err)
	defer l.Close()
	connect(t, l)
	n, err := OpenSockets(os.Getppid(), map[int]bool{l.Addr().(*net.TCPAddr).Port: true})
	if err == nil && n != 0 {
		t.Errorf("%d of ours in our parent", n)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
