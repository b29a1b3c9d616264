package hotrestart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/unix"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/envoy"
)

// This file is what a program leaves to the one that replaces it: all of the
// core's state, and of the shell what can't be had again. Descriptors are numbers
// that mean the same in both.

// EstateVersion is that of the format. Whatever changes in the types below, State
// included, makes another one (TestTheEstateHasAVersion); a program reads its own
// only, and a new one that can read an older one as well says so in readable.
const EstateVersion = 1

// readable are the versions that this program takes over.
var readable = []int{EstateVersion}

// estate is the whole.
type estate struct {
	Version int       `json:"version"`
	Program string    `json:"program"` // the version of the one that leaves it
	At      time.Time `json:"at"`
	Args    []string  `json:"args"` // of both

	StateDir string `json:"state_dir"`
	BaseID   uint32 `json:"base_id"`
	Marker   string `json:"marker"`
	Control  string `json:"control"`

	State       State         `json:"state"`
	Concurrency int           `json:"concurrency"`
	Wishes      int           `json:"wishes"`
	Started     time.Time     `json:"started"`
	Ready       bool          `json:"ready"`
	Inputs      []inputEstate `json:"inputs"`
	Children    []childEstate `json:"children"`
	Traces      []traceEstate `json:"traces"`

	MarkerFD int            `json:"marker_fd"` // noFD: withdrawn
	Sockets  *control.Files `json:"sockets"`   // nil: no control socket
	Old      int            `json:"old"`       // the program that leaves it, for the way back
	Failed   string         `json:"failed"`    // why the new one could not go on, and gave it back
	New      string         `json:"new"`       // its version
}

// noFD is no descriptor.
const noFD = envoy.NoFD

type inputEstate struct {
	ID       int             `json:"id"`
	Boot     envoy.Bootstrap `json:"boot"`
	Hash     string          `json:"hash"`
	Snapshot fileEstate      `json:"snapshot"`
	Workers  int             `json:"workers"`
	Mode     Mode            `json:"mode"`

	Binary            fileEstate `json:"binary"`
	BinaryHash        string     `json:"binary_hash"`
	Version           string     `json:"envoy_version"`
	HotRestartVersion string     `json:"hot_restart_version"`
}

type fileEstate struct {
	FD   int    `json:"fd"`
	Path string `json:"path"`
}

func (f fileEstate) open() *os.File { return os.NewFile(uintptr(f.FD), f.Path) }

type childEstate struct {
	Epoch     int              `json:"epoch"`
	Parent    int              `json:"parent"`
	Foreign   bool             `json:"foreign"`
	Input     int              `json:"input"` // none of a foreign one
	Admin     envoy.Address    `json:"admin"`
	PID       int              `json:"pid"`
	Stderr    int              `json:"stderr"` // noFD: it has closed it
	Lines     []string         `json:"lines"`
	Seated    bool             `json:"seated"`
	Sitter    envoy.Sitter     `json:"sitter"`
	Older     []envoy.Sitter   `json:"older"`
	TookAdmin bool             `json:"took_admin"`
	Known     *envoy.Resources `json:"known"`
	Doubt     time.Time        `json:"doubt"`
	Relay     *relayEstate     `json:"relay"`
	AsParent  *parentEstate    `json:"as_parent"`
	OfParent  *parentEstate    `json:"of_parent"`
}

type relayEstate struct {
	FD    int              `json:"fd"`
	Envoy int              `json:"envoy"` // the connection to it; noFD: none
	State envoy.RelayState `json:"state"`
}

type parentEstate struct {
	FD    int               `json:"fd"`
	Envoy int               `json:"envoy"` // as above
	State envoy.ParentState `json:"state"`
}

// traceEstate is the trace that an old epoch's release belongs to.
type traceEstate struct {
	Epoch int    `json:"epoch"`
	Trace string `json:"trace"`
	Span  string `json:"span"`
	Flags byte   `json:"flags"`
}

func (t traceEstate) context() trace.SpanContext {
	id, _ := trace.TraceIDFromHex(t.Trace)
	span, _ := trace.SpanIDFromHex(t.Span)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(t.Flags)})
}

// descriptors are all that must stay open.
func (e *estate) descriptors() []int {
	fds := []int{e.MarkerFD, e.Old}
	if e.Sockets != nil {
		fds = append(fds, e.Sockets.Lock, e.Sockets.Listener)
	}
	for _, in := range e.Inputs {
		fds = append(fds, in.Snapshot.FD, in.Binary.FD)
	}
	for _, c := range e.Children {
		fds = append(fds, c.Stderr)
		if c.Relay != nil {
			fds = append(fds, c.Relay.FD, c.Relay.Envoy)
		}
		for _, p := range []*parentEstate{c.AsParent, c.OfParent} {
			if p != nil {
				fds = append(fds, p.FD, p.Envoy)
			}
		}
	}
	slices.Sort(fds)
	fds = slices.Compact(fds)
	return slices.DeleteFunc(fds, func(fd int) bool { return fd == noFD })
}

// file writes the estate to memory that nobody can change any more.
func (e *estate) file() (*os.File, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	fd, err := unix.MemfdCreate("aether state", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "aether state")
	if _, err = f.Write(data); err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write the state: %w", err)
	}
	return f, nil
}

// maxEstate bounds what is read: resources of 20,000 clusters are some MB.
const maxEstate = 1 << 30

// readEstate reads what file wrote. The version is looked at before anything else:
// fields of another one may mean something else.
func readEstate(f *os.File) (*estate, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxEstate))
	if err != nil {
		return nil, fmt.Errorf("read the handed-over state: %w", err)
	}
	var head struct {
		Version int    `json:"version"`
		Program string `json:"program"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("the handed-over state can't be read: %w", err)
	}
	if !slices.Contains(readable, head.Version) {
		return nil, fmt.Errorf("the supervisor %s hands its state over in format %d, and this program takes %v only; restart the container (or the service) to change to it",
			head.Program, head.Version, readable)
	}
	var e estate
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&e); err != nil {
		return nil, fmt.Errorf("the handed-over state can't be read: %w", err)
	}
	return &e, nil
}

// fits tells whether a program with this configuration may go on with it.
func (e *estate) fits(cfg *Config) error {
	for _, x := range []struct{ what, was, is string }{
		{"--state-dir", e.StateDir, cfg.StateDir},
		{"--base-id", fmt.Sprint(e.BaseID), fmt.Sprint(cfg.BaseID)},
		{"--ready-marker", e.Marker, cfg.ReadyMarkerPath},
		{"--control-socket", e.Control, cfg.ControlSocket},
	} {
		if x.was != x.is {
			return fmt.Errorf("%s was %s and is %s for the new program; restart the container (or the service) to change it", x.what, x.was, x.is)
		}
	}
	if e.State.unquiet() != "" {
		return fmt.Errorf("the handed-over state is none to go on from: %s", e.State.unquiet())
	}
	return nil
}

// CheckEstate tells whether a program with this configuration could take over the
// state in f, without doing so.
func CheckEstate(cfg Config, f *os.File) error {
	e, err := readEstate(f)
	if err != nil {
		return err
	}
	return e.fits(&cfg)
}

// rebase gives every time in v the clock of this program: what was so long ago, or
// so far ahead, still is, whatever the wall clock does later.
func rebase(v any, at, now time.Time) { rebaseValue(reflect.ValueOf(v), at, now) }

func rebaseValue(v reflect.Value, at, now time.Time) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			rebaseValue(v.Elem(), at, now)
		}
	case reflect.Slice:
		for i := range v.Len() {
			rebaseValue(v.Index(i), at, now)
		}
	case reflect.Struct:
		if t, ok := v.Addr().Interface().(*time.Time); ok {
			if !t.IsZero() {
				*t = now.Add(t.Sub(at))
			}
			return
		}
		for i := range v.NumField() {
			rebaseValue(v.Field(i), at, now)
		}
	}
}

// descriptor is the number of an open file, which stays f's and as it is.
func descriptor(f syscall.Conn) (int, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return noFD, err
	}
	fd := noFD
	err = raw.Control(func(n uintptr) { fd = int(n) })
	return fd, err
}
