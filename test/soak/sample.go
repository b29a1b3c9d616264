package main

import (
	"errors"
	"strconv"

	"aether.internal/test/node"
)

// sample is one look at a supervisor that has a single epoch, and at that one.
type sample struct {
	Handoffs   int
	Supervisor process
	Envoy      process // the newest, which serves
	Children   family
	Processes  int // with the node's directory in their arguments
	Files      int // below the node's directory
	SHM        int // in /dev/shm with the node's base-id in their name
	Failures   int // of the load, so far
}

func takeSample(n *node.Node, supervisor int, st node.Status) (sample, error) {
	s := sample{Handoffs: st.Serving}
	var errs [6]error
	s.Supervisor, errs[0] = readProcess(supervisor)
	s.Envoy, errs[1] = readProcess(st.Epochs[0].PID)
	s.Children, errs[2] = children(supervisor)
	s.Processes, errs[3] = mentioning(n.Dir)
	s.Files, errs[4] = filesBelow(n.Dir)
	s.SHM, errs[5] = filesNamed("/dev/shm", "_"+strconv.Itoa(int(n.BaseID)))
	return s, errors.Join(errs[:]...)
}

// series are the things that may not grow, each with what is noise. A count
// that leaks one in a hundred handoffs exceeds its allowance in a thousand.
var series = []struct {
	name  string
	of    func(sample) int
	allow allowance
}{
	{"supervisor: resident KiB", func(s sample) int { return s.Supervisor.RSS }, memory},
	{"supervisor: heap and stacks KiB", func(s sample) int { return s.Supervisor.Anon }, memory},
	// The runtime makes a thread when all are in system calls, and keeps it.
	{"supervisor: threads", func(s sample) int { return s.Supervisor.Threads }, allowance{by: 3}},
	{"supervisor: descriptors", func(s sample) int { return s.Supervisor.Descriptors }, counted},
	{"supervisor: sockets", func(s sample) int { return s.Supervisor.Sockets }, counted},
	{"supervisor: children", func(s sample) int { return s.Children.Living }, counted},
	{"supervisor: zombies", func(s sample) int { return s.Children.Zombies }, allowance{never: true}},
	{"newest Envoy: resident KiB", func(s sample) int { return s.Envoy.RSS }, envoyMemory},
	{"newest Envoy: heap and stacks KiB", func(s sample) int { return s.Envoy.Anon }, envoyMemory},
	{"newest Envoy: threads", func(s sample) int { return s.Envoy.Threads }, counted},
	// It has connections of the load, more or less of them.
	{"newest Envoy: descriptors", func(s sample) int { return s.Envoy.Descriptors }, allowance{by: 10}},
	{"processes", func(s sample) int { return s.Processes }, counted},
	{"files and sockets on disk", func(s sample) int { return s.Files }, counted},
	{"files in /dev/shm", func(s sample) int { return s.SHM }, allowance{}},
	{"failed operations", func(s sample) int { return s.Failures }, allowance{never: true}},
}

var (
	memory      = allowance{by: 1024, percent: 5}
	envoyMemory = allowance{by: 2048, percent: 5}
	counted     = allowance{by: 2}
)
