package main

import (
	"time"

	"aether.internal/test/load"
)

// timeout of an operation: on a busy machine answers take seconds, and what is
// judged is whether they come.
const timeout = 30 * time.Second

// plan is every kind of traffic, rate operations a second in all. Each kept
// connection is used several times a second: Envoy tells a connection to close
// only when it answers on it (fact 14), and a parent that waits for that keeps
// the next handoff waiting.
func plan(target load.Target, rate float64) load.Plan {
	p := load.Plan{Target: target, StreamDuration: streams, Timeout: timeout}
	for _, k := range []struct {
		kind  string
		tls   bool
		share float64
	}{
		{load.New, false, 20}, {load.New, true, 6},
		{load.KeepAlive, false, 12}, {load.KeepAlive, true, 8},
		{load.H2, false, 8}, {load.H2, true, 8},
		{load.Stream, false, 5}, {load.Stream, true, 3}, {load.Upload, false, 5},
		{load.H2Stream, true, 5}, {load.GRPC, false, 5},
		{load.TCP, false, 6}, {load.TCP, true, 3}, {load.TCPHold, false, 6},
	} {
		p.Kinds = append(p.Kinds, load.KindPlan{Kind: k.kind, TLS: k.tls, Rate: k.share * rate / 100, Connections: 1})
	}
	return p
}
