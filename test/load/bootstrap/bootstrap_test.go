package bootstrap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"aether.internal/tools/envoy/fetch"
)

func full(t *testing.T) Options {
	t.Helper()
	c, err := NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Admin: "127.0.0.1:9901", HTTP: 1001, HTTPS: 1002, TCP: 1003, TLS: 1004,
		UpstreamHTTP: "127.0.0.1:2001", UpstreamTCP: "[::1]:2002", Certificate: c,
	}
}

// shapes are the bootstraps that tests ask for, by what they leave out or add.
func shapes(t *testing.T) map[string]Options {
	all := full(t)
	shapes := map[string]Options{"everything": all}
	with := func(name string, change func(*Options)) {
		o := all
		change(&o)
		shapes[name] = o
	}
	with("admin on a Unix socket", func(o *Options) { o.Admin = "unix:/tmp/a dir/admin" })
	with("no admin", func(o *Options) { o.Admin = "" })
	with("only HTTP", func(o *Options) { o.HTTPS, o.TCP, o.TLS, o.UpstreamTCP = 0, 0, 0, "" })
	with("no certificate needed", func(o *Options) { o.HTTPS, o.TLS, o.Certificate = 0, 0, Certificate{} })
	with("a strange tag", func(o *Options) { o.EpochTag = `v"2": {x` })
	with("XDS", func(o *Options) { o.XDS = "/tmp/xds" })
	with("XDS with a timeout", func(o *Options) { o.XDS, o.InitialFetchTimeout = "/tmp/xds", 1500*time.Millisecond })
	with("XDS with Envoy's timeout, and nothing static", func(o *Options) {
		o.XDS, o.InitialFetchTimeout = "unix:/tmp/xds", -1
		o.HTTP, o.HTTPS, o.TCP, o.TLS = 0, 0, 0, 0
	})
	return shapes
}

func TestEnvoyTakesEveryShape(t *testing.T) {
	t.Parallel()
	envoy, err := fetch.Path(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range shapes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := o.YAML()
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "envoy.yaml")
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if out, err := exec.CommandContext(ctx, envoy, "--mode", "validate", "-c", path).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s\n%s", err, out, text)
			}
		})
	}
}

// parsed is the part of a bootstrap that the test looks at.
type parsed struct {
	Admin   map[string]any
	Dynamic struct {
		LDS struct {
			Timeout *string `yaml:"initial_fetch_timeout"`
		} `yaml:"lds_config"`
	} `yaml:"dynamic_resources"`
	Static struct {
		Listeners []struct {
			Name    string
			Address struct {
				Socket struct {
					Port int `yaml:"port_value"`
				} `yaml:"socket_address"`
			}
		}
		Clusters []struct{ Name string }
	} `yaml:"static_resources"`
}

func TestEachShapeHasWhatItSays(t *testing.T) {
	t.Parallel()
	all := "http:1001 https:1002 tcp:1003 tls:1004 | web raw"
	want := map[string]string{
		"everything": all, "admin on a Unix socket": all, "no admin": all, "a strange tag": all,
		"only HTTP":             "http:1001 | web",
		"no certificate needed": "http:1001 tcp:1003 | web raw",
		"XDS":                   all + " xds 0s",
		"XDS with a timeout":    all + " xds 1.5s",
		"XDS with Envoy's timeout, and nothing static": "| web raw xds",
	}
	for name, o := range shapes(t) {
		text, err := o.YAML()
		if err != nil {
			t.Fatal(err)
		}
		var p parsed
		if err := yaml.Unmarshal(text, &p); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if got := p.summary(); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
		if (p.Admin == nil) != (o.Admin == "") {
			t.Errorf("%s: admin %v", name, p.Admin)
		}
	}
}

func (p parsed) summary() string {
	var parts []string
	for _, l := range p.Static.Listeners {
		parts = append(parts, fmt.Sprintf("%s:%d", l.Name, l.Address.Socket.Port))
	}
	parts = append(parts, "|")
	for _, c := range p.Static.Clusters {
		parts = append(parts, c.Name)
	}
	if t := p.Dynamic.LDS.Timeout; t != nil {
		parts = append(parts, *t)
	}
	return strings.Join(parts, " ")
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		change func(*Options)
		want   string
	}{
		{func(o *Options) { o.Certificate = Certificate{} }, "needs a certificate"},
		{func(o *Options) { o.UpstreamHTTP = "" }, `cluster "web"`},
		{func(o *Options) { o.UpstreamTCP = "127.0.0.1" }, `cluster "raw"`},
		{func(o *Options) { o.UpstreamTCP = "127.0.0.1:0" }, "want a port"},
		{func(o *Options) { o.Admin = "127.0.0.1:70000" }, "admin:"},
	} {
		o := full(t)
		c.change(&o)
		if _, err := o.YAML(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

func TestTarget(t *testing.T) {
	t.Parallel()
	o := Options{Host: "::1", HTTP: 1, TLS: 4, Certificate: Certificate{Pool: x509.NewCertPool()}}
	got := o.Target()
	if got.HTTP != "[::1]:1" || got.HTTPS != "" || got.TCP != "" || got.TLS != "[::1]:4" || got.RootCAs != o.Certificate.Pool {
		t.Errorf("%+v", got)
	}
	if host := (Options{HTTP: 1}).Target().HTTP; host != "127.0.0.1:1" {
		t.Errorf("default host: %s", host)
	}
}

func TestFreePortsAreDifferentAndFree(t *testing.T) {
	t.Parallel()
	ports, err := FreePorts(20)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		if p == 0 || seen[p] {
			t.Errorf("ports %v", ports)
		}
		seen[p] = true
	}
}

func TestTheCertificateIsTrustedByItsPoolAlone(t *testing.T) {
	t.Parallel()
	c, err := NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(c.CertPath, c.KeyPath)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := NewCertificate(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		pool *x509.CertPool
		name string
		good bool
	}{{c.Pool, "127.0.0.1", true}, {c.Pool, "localhost", true}, {c.Pool, "example.org", false}, {stranger.Pool, "127.0.0.1", false}} {
		if err := shake(t, pair, &tls.Config{RootCAs: x.pool, ServerName: x.name}); (err == nil) != x.good {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	for _, path := range []string{c.KeyPath, c.CertPath, c.CAPath} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// shake does a handshake and returns the client's error. Over a real socket:
// net.Pipe has no buffer, so an alert meets a session ticket and both wait.
func shake(t *testing.T, pair tls.Certificate, config *tls.Config) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // one handshake; joined below
		defer close(done)
		if c, err := l.Accept(); err == nil {
			_ = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{pair}}).Handshake()
			_ = c.Close()
		}
	}()
	defer func() { _ = l.Close(); <-done }()
	dialer := tls.Dialer{Config: config, NetDialer: &net.Dialer{Timeout: 20 * time.Second}}
	c, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err == nil {
		_ = c.Close()
	}
	return err
}

func TestACertificateThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if _, err := NewCertificate(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("no error")
	}
}

// Envoy binds with SO_REUSEPORT: two of them at one port share its connections,
// silently, and each test sees the other's answers.
func TestAPortIsGivenOnceWhoeverAsks(t *testing.T) {
	t.Parallel()
	ports, err := FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := reserve(ports[0]); err == nil {
		again.Close()
		t.Errorf("port %d is given twice", ports[0])
	}
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if taken, err := reserve(l.Addr().(*net.TCPAddr).Port); err == nil {
		taken.Close()
		t.Error("a port in use is given away")
	}
}
