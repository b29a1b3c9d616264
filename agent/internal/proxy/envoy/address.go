package envoy

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Address is where an admin or a listener is found: host and port, or the path
// of a Unix socket.
type Address struct {
	Host string
	Port int
	Path string // Unix socket; a leading @ stands for an abstract one
	UDP  bool
}

const unixPrefix = "unix:"

// ParseAddress reads "host:port" (IPv6 in brackets) or "unix:PATH". Port 0 is
// read as it stands; whether it is acceptable is the caller's business.
func ParseAddress(s string) (Address, error) {
	if path, ok := strings.CutPrefix(s, unixPrefix); ok {
		if path == "" {
			return Address{}, fmt.Errorf("address %q: the path after %q is missing", s, unixPrefix)
		}
		return Address{Path: path}, nil
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" {
		return Address{}, fmt.Errorf("address %q: want host:port or unix:PATH", s)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return Address{}, fmt.Errorf("address %q: port %q is not a number from 0 to 65535", s, port)
	}
	return Address{Host: host, Port: int(n)}, nil
}

// String is the form that ParseAddress reads.
func (a Address) String() string {
	if a.IsUnix() {
		return unixPrefix + a.Path
	}
	return net.JoinHostPort(a.Host, strconv.Itoa(a.Port))
}

// IsUnix tells whether a names a Unix socket.
func (a Address) IsUnix() bool { return a.Path != "" }

// network is what a net.Dialer wants to hear.
func (a Address) network() (network, address string) {
	if a.IsUnix() {
		return "unix", a.Path
	}
	return "tcp", a.String()
}

// covers tells whether a socket bound at got is what a asked for: port 0 in a
// accepts any port, and hosts are compared as addresses ("::1" is "0:0:…:1").
func (a Address) covers(got Address) bool {
	if a.IsUnix() || got.IsUnix() {
		return a.Path == got.Path
	}
	return a.UDP == got.UDP && (a.Port == 0 || a.Port == got.Port) && sameHost(a.Host, got.Host)
}

func sameHost(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.Unmap() == y.Unmap()
}
