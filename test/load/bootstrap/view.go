package bootstrap

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// view is what the template sees.
type view struct {
	Options
	AdminAddress *address
	Listeners    []listener
	Clusters     []cluster
}

type listener struct {
	Options
	Name   string
	Port   int
	Web    bool // HTTP; else TCP proxy
	Secure bool
}

type cluster struct {
	Name    string
	Web     bool // speaks what the client speaks
	H2      bool // speaks HTTP/2
	Address address
}

// address is a pipe if Path is set, else a socket.
type address struct {
	Host, Path string
	Port       int
}

func (o Options) view() (view, error) {
	o = o.withDefaults()
	v := view{Options: o, Listeners: o.listeners()}
	if o.Admin != "" {
		a, err := parse(o.Admin)
		if err != nil {
			return v, fmt.Errorf("admin: %w", err)
		}
		v.AdminAddress = &a
	}
	if (o.HTTPS != 0 || o.TLS != 0) && o.Certificate.CertPath == "" {
		return v, errors.New("an HTTPS or TLS listener needs a certificate (see NewCertificate)")
	}
	var err error
	v.Clusters, err = o.clusters()
	return v, err
}

func (o Options) listeners() []listener {
	var some []listener
	for _, l := range []listener{
		{Name: "http", Port: o.HTTP, Web: true},
		{Name: "https", Port: o.HTTPS, Web: true, Secure: true},
		{Name: "tcp", Port: o.TCP},
		{Name: "tls", Port: o.TLS, Secure: true},
	} {
		if l.Port != 0 {
			l.Options = o
			some = append(some, l)
		}
	}
	return some
}

// clusters has an upstream even where no static listener uses it: one that
// XDS delivers may.
func (o Options) clusters() ([]cluster, error) {
	var some []cluster
	for _, c := range []struct {
		cluster
		text   string
		needed bool
	}{
		{cluster{Name: "web", Web: true}, o.UpstreamHTTP, o.HTTP != 0 || o.HTTPS != 0},
		{cluster{Name: "raw"}, o.UpstreamTCP, o.TCP != 0 || o.TLS != 0},
		{cluster{Name: "xds", H2: true}, o.XDS, false},
	} {
		if c.text == "" && !c.needed {
			continue
		}
		var err error
		if c.Address, err = parse(c.text); err != nil {
			return nil, fmt.Errorf("upstream of cluster %q: %w", c.Name, err)
		}
		some = append(some, c.cluster)
	}
	return some, nil
}

// FetchTimeout is in the form of a protobuf duration.
func (v view) FetchTimeout() string {
	return strconv.FormatFloat(v.InitialFetchTimeout.Seconds(), 'f', -1, 64) + "s"
}

// parse reads "host:port", "unix:PATH" or an absolute path.
func parse(text string) (address, error) {
	if path := strings.TrimPrefix(text, "unix:"); path != text || strings.HasPrefix(text, "/") {
		return address{Path: path}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return address{}, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return address{}, fmt.Errorf("address %q: want a port from 1 to 65535", text)
	}
	return address{Host: host, Port: int(n)}, nil
}
