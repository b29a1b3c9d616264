// Package config is the router's configuration: what Envoy listens on, and the
// pools and clusters that requests go to.
package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is all files of a configuration together.
type Config struct {
	Listeners []Listener `yaml:"listeners"`
	Pools     []Pool     `yaml:"pools"`
	Clusters  []Cluster  `yaml:"clusters"`

	Hash string `yaml:"-"` // hex SHA-256 of the content
}

// Listener has either routes or tcp.
type Listener struct {
	Name    string `yaml:"name"`
	Address string `yaml:"address"` // host:port
	TLS     *TLS   `yaml:"tls"`
	// IdleTimeout of a connection without a request; 0 leaves Envoy's (an hour).
	// Idle connections can only be told to close by it, so it is how long they
	// may hold a drain up.
	IdleTimeout time.Duration `yaml:"idle_timeout"`
	Routes      []Route       `yaml:"routes"`
	TCP         string        `yaml:"tcp"` // the cluster that connections go to
}

// TLS are files that Envoy reads.
type TLS struct {
	Certificate string `yaml:"certificate"`
	Key         string `yaml:"key"`
}

// Route sends what matches to a pool, where it may be parked, or straight to a
// cluster. The first match counts.
type Route struct {
	Host    string        `yaml:"host"`   // "" or "*": any
	Prefix  string        `yaml:"prefix"` // of the path, "" is /
	Pool    string        `yaml:"pool"`
	Cluster string        `yaml:"cluster"`
	Timeout time.Duration `yaml:"timeout"` // of the answer, not counting parking; 0: none
}

// Pool is a set of workers that take a bounded number of requests each.
type Pool struct {
	Name     string        `yaml:"name"`
	Workers  []Worker      `yaml:"workers"`
	Queue    int           `yaml:"queue"` // most parked requests
	Park     time.Duration `yaml:"park"`  // longest parking
	Protocol string        `yaml:"protocol"`
}

// Worker of a pool.
type Worker struct {
	Address string `yaml:"address"` // IP:port
	Slots   int    `yaml:"slots"`   // requests at once; 0: one
}

// Cluster is a set of endpoints that take whatever comes.
type Cluster struct {
	Name      string   `yaml:"name"`
	Endpoints []string `yaml:"endpoints"` // IP:port
	Protocol  string   `yaml:"protocol"`
}

// Protocols towards workers and endpoints: as the client's, HTTP/1.1, HTTP/2.
const (
	Auto  = "auto" // "" is the same
	HTTP1 = "http1"
	HTTP2 = "http2"
)

// Load reads a file, or all *.yaml and *.yml files of a directory, in the order
// of their names. It refuses what could not work, by name.
func Load(path string) (Config, error) {
	files, err := read(path)
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	var all Config
	for _, f := range files {
		var c Config
		d := yaml.NewDecoder(bytes.NewReader(f.data))
		d.KnownFields(true)
		if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
			return Config{}, fmt.Errorf("configuration: %s: %w", f.path, err)
		}
		all.Listeners = append(all.Listeners, c.Listeners...)
		all.Pools = append(all.Pools, c.Pools...)
		all.Clusters = append(all.Clusters, c.Clusters...)
	}
	all.Hash = hash(files)
	if err := all.check(); err != nil {
		return Config{}, fmt.Errorf("configuration: %s: %w", path, err)
	}
	return all, nil
}

type file struct {
	path string
	data []byte
}

func read(path string) ([]file, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	paths := []string{path}
	if info.IsDir() {
		if paths, err = inDirectory(path); err != nil {
			return nil, err
		}
	}
	var files []file
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			return nil, err
		}
		files = append(files, file{p, data})
	}
	return files, nil
}

// inDirectory leaves out hidden names: a ConfigMap's "..data" is the same files
// once more.
func inDirectory(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !strings.HasPrefix(e.Name(), ".") && (ext == ".yaml" || ext == ".yml") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: no *.yaml in it", dir)
	}
	return paths, nil
}

func hash(files []file) string {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%s %d\n", filepath.Base(f.path), len(f.data))
		h.Write(f.data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// PoolNames are the pools in use, sorted.
func (c Config) PoolNames() []string {
	var names []string
	for _, p := range c.Pools {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return names
}
