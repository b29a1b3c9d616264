package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"aether.internal/test/load"
)

// limit of a draining epoch. A parent is ended as soon as it is idle, which
// takes as long as a stream does; the limit is for machines that are so busy
// that streams take ten times as long.
const limit = time.Minute

// start starts the supervisor.
func (s *stage) start(ctx context.Context, _ look) error {
	if err := s.tagged("v1"); err != nil {
		return err
	}
	drain := max(2*s.pace, time.Second) // Envoy takes whole seconds
	run, err := s.Start(ctx, "--drain-time", drain.String(), "--parent-shutdown-time", limit.String())
	if err == nil {
		s.run = run
	}
	return err
}

func (s *stage) startLoad(ctx context.Context, _ look) error {
	var err error
	s.load, err = load.Start(ctx, s.plan(s.Target()))
	return err
}

// write changes the bootstrap, by rename, as an editor or a ConfigMap would.
func (s *stage) write(tag string) func(context.Context, look) error {
	return func(context.Context, look) error { return s.tagged(tag) }
}

func (s *stage) tagged(tag string) error {
	s.Bootstrap.EpochTag = tag
	data, err := s.Bootstrap.YAML()
	if err != nil {
		return err
	}
	return s.place(data, tag)
}

// place puts a bootstrap in place and remembers what it is called.
func (s *stage) place(data []byte, tag string) error {
	sum := sha256.Sum256(data)
	s.tags[hex.EncodeToString(sum[:])] = tag
	return s.WriteRaw(data)
}

// writeMany writes bootstraps tagged "tag.1" to "tag.n".
func (s *stage) writeMany(tag string, n int) func(context.Context, look) error {
	return func(_ context.Context, look look) error {
		for i := range n {
			if err := s.tagged(fmt.Sprintf("%s.%d", tag, i+1)); err != nil {
				return err
			}
			if err := look(burstInterval); err != nil {
				return err
			}
		}
		return nil
	}
}

// writeBroken writes a bootstrap with a misspelt field.
func (s *stage) writeBroken(context.Context, look) error {
	data, err := s.Bootstrap.YAML()
	if err != nil {
		return err
	}
	broken := bytes.Replace(data, []byte("listeners:"), []byte("listners:"), 1)
	if bytes.Equal(broken, data) {
		return errors.New("the bootstrap has no listeners to misspell")
	}
	return s.place(broken, "broken")
}

// writeTaken writes a bootstrap that asks for the port of our own upstream:
// Envoy's validation can't see that it is taken (fact 5).
func (s *stage) writeTaken(context.Context, look) error {
	_, port, err := net.SplitHostPort(s.Upstream.TCP)
	if err != nil {
		return err
	}
	o := s.Bootstrap
	if _, err := fmt.Sscan(port, &o.TCP); err != nil {
		return err
	}
	data, err := o.YAML()
	if err != nil {
		return err
	}
	return s.place(data, "port taken")
}

func (s *stage) swapBinary(context.Context, look) error { return s.envoys.installNew(s.EnvoyPath) }

func (s *stage) hup(context.Context, look) error { return s.run.Signal(syscall.SIGHUP) }

func (s *stage) terminate(context.Context, look) error { return s.run.Signal(syscall.SIGTERM) }

// stopLoad starts no more operations; those under way may end.
func (s *stage) stopLoad(context.Context, look) error {
	s.rest = make(chan struct{})
	// Ends with the last operation, at the latest at its deadline; close joins it.
	go func() {
		defer close(s.rest)
		s.load.Stop()
	}()
	return nil
}
