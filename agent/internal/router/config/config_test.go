package config

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const good = `
listeners:
- name: web
  address: 0.0.0.0:8080
  idle_timeout: 10s
  routes:
  - {prefix: /static, cluster: files, timeout: 3s}
  - {host: a.example, pool: actors}
- {name: raw, address: "0.0.0.0:9000", tcp: files, tls: {certificate: c, key: k}}
pools:
- name: actors
  workers: [{address: "10.0.0.1:80", slots: 4}, {address: "[::1]:80"}]
  queue: 100
  park: 30s
clusters:
- {name: files, endpoints: ["10.0.0.2:80"], protocol: http2}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "b.yaml")
	write(t, path, good)
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if l := c.Listeners[0]; l.IdleTimeout != 10*time.Second || l.Routes[0].Timeout != 3*time.Second || l.Routes[1].Pool != "actors" {
		t.Errorf("%+v", l)
	}
	if p := c.Pools[0]; p.Park != 30*time.Second || p.Workers[0].Slots != 4 {
		t.Errorf("%+v", p)
	}
	// A directory is its files; hidden ones and others don't count.
	write(t, filepath.Join(dir, "a.yml"), "listeners: [{name: more, address: '[::]:1', tcp: files}]")
	write(t, filepath.Join(dir, ".hidden.yaml"), "x")
	write(t, filepath.Join(dir, "README"), "x")
	all, err := Load(dir)
	if err != nil || len(all.Listeners) != 3 || all.Listeners[0].Name != "more" || all.Hash == c.Hash {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestLoadRefusesByName(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	for want, text := range map[string]string{
		"no listeners":                        "",
		"field prefx not found":               change("prefix", "prefx"),
		`there is no pool "actor"`:            change("pool: actors", "pool: actor"),
		`there is no cluster "file"`:          change("cluster: files", "cluster: file"),
		`tcp: there is no cluster "actors"`:   change("tcp: files", "tcp: actors"),
		"want either pool or cluster":         change(", pool: actors", ""),
		"want either routes or tcp":           change("tcp: files,", ""),
		`worker "worker:80": want IP:port`:    change("10.0.0.1:80", "worker:80"),
		`endpoint "10.0.0.2"`:                 change("10.0.0.2:80", "10.0.0.2"),
		"but no time to park":                 change("  park: 30s", ""),
		"park 25h0m0s":                        change("30s", "25h"),
		"queue -1":                            change("100", "-1"),
		`protocol "h2"`:                       change("http2", "h2"),
		`address "localhost:8080"`:            change("0.0.0.0:8080", "localhost:8080"),
		`address "0.0.0.0:0"`:                 change("0.0.0.0:8080", "0.0.0.0:0"),
		"name or address is taken (web)":      change("0.0.0.0:9000", "0.0.0.0:8080"),
		`cluster "actors": the name is taken`: change("name: files", "name: actors"),
		"tls: want certificate and key":       change(", key: k", ""),
		`prefix "static": it must begin with`: change("/static", "static"),
		"timeout -3s":                         change("timeout: 3s", "timeout: -3s"),
		"idle_timeout -10s":                   change("10s", "-10s"),
		`worker "[::1]:80": twice`:            change("10.0.0.1:80", "[::1]:80"),
		"cannot unmarshal":                    change("100", "many"),
	} {
		path := filepath.Join(t.TempDir(), "c.yaml")
		write(t, path, text)
		if c, err := Load(path); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%+v, %v; want %q", c, err, want)
		}
	}
	if _, err := Load(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no *.yaml in it") {
		t.Error(err)
	}
	if _, err := Load("/nowhere"); err == nil {
		t.Error("nothing is there")
	}
}

func TestWatch(t *testing.T) {
	for name, at := range map[string]func(dir string) string{
		"a file":      func(dir string) string { return filepath.Join(dir, "c.yaml") },
		"a directory": func(dir string) string { return dir },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "c.yaml")
			write(t, file, good)
			first, err := Load(at(dir))
			if err != nil {
				t.Fatal(err)
			}
			got := make(chan Config)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			refused := make(chan string, 10)
			go func() { // joined below
				defer close(done)
				Watch(ctx, at(dir), first.Hash, func(c Config) { got <- c }, slog.New(slog.NewTextHandler(lines(refused), nil)))
			}()
			write(t, file, "broken")
			select {
			case said := <-refused:
				if !strings.Contains(said, "refused; what runs stays") {
					t.Error(said)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("nothing is said")
			}
			write(t, file, strings.ReplaceAll(good, "8080", "8081"))
			select {
			case c := <-got:
				if c.Listeners[0].Address != "0.0.0.0:8081" {
					t.Errorf("%+v", c)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("not seen")
			}
			cancel()
			<-done
			if len(refused) > 0 {
				t.Error("said again: ", <-refused)
			}
		})
	}
}

// lines is a log that can be waited for.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
