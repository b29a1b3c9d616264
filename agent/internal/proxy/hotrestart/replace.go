package hotrestart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

// This file replaces our own program (docs/concepts.md): the new one is checked
// while everything goes on, then all that reads stops between two reads, the state
// is written to memory, and the main thread executes the new program. Whatever
// fails before that leaves us as we were.

// replacement is a new program that waits for its moment.
type replacement struct {
	exe   *os.File
	to    string     // its version
	going chan error // nil: it is about to be executed
}

// CheckVariable makes proxy-supervisor say whether it could take over the state
// behind the descriptor of this number, and end.
const CheckVariable = "AETHER_CHECK_STATE_FD"

// Takeover is what a program says to that.
type Takeover struct {
	Takes   bool   `json:"takes"`
	Version string `json:"version"`
	Error   string `json:"error,omitempty"`
}

const (
	checkTime  = 20 * time.Second        // a start of a program this size takes 0.1 s
	freezeTime = time.Second             // an answer of a parent takes a millisecond
	flushTime  = 2500 * time.Millisecond // a collector has two seconds
)

// Upgrade replaces this program by the one at req.Path, or at our own. It returns
// when that is about to happen (Accepted), or won't (Refused), at the latest at
// ctx's end. With req.Check it only asks whether it could.
func (s *Supervisor) Upgrade(ctx context.Context, req control.UpgradeRequest) (control.UpgradeResult, error) {
	path := req.Path
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			return control.UpgradeResult{}, err
		}
	}
	exe, version, err := s.tryProgram(ctx, path)
	if err != nil {
		return control.UpgradeResult{Outcome: control.Refused, To: version, Error: err.Error()}, nil
	}
	if req.Check {
		return control.UpgradeResult{Outcome: control.Unchanged, To: version}, exe.Close()
	}
	r := &replacement{exe: exe, to: version, going: make(chan error, 1)}
	result := control.UpgradeResult{Outcome: control.Refused, To: version}
	err = s.ask(ctx, func(sh *shell) {
		if sh.replacement != nil {
			r.going <- errors.New("another upgrade is under way")
			return
		}
		sh.replacement = r
		sh.step(UpgradeWanted{})
	})
	if err != nil {
		return result, errors.Join(err, exe.Close())
	}
	select {
	case err = <-r.going:
	case <-ctx.Done():
		_ = s.ask(context.WithoutCancel(ctx), func(sh *shell) {
			err = fmt.Errorf("the supervisor was not quiet in time: %s", sh.state.unquiet())
			sh.abandon(r, err)
		})
	}
	if err != nil {
		result.Error = err.Error()
		return result, nil
	}
	result.Outcome = control.Accepted
	return result, nil
}

// tryProgram opens the program at path and has it say whether it could go on from
// where we are.
func (s *Supervisor) tryProgram(ctx context.Context, path string) (*os.File, string, error) {
	exe, err := os.Open(path)
	if err != nil {
		return nil, "", plain(err)
	}
	var state *os.File
	if e := s.ask(ctx, func(sh *shell) { state, err = sh.draft() }); e != nil || err != nil {
		return nil, "", errors.Join(e, err, exe.Close())
	}
	defer state.Close()
	answer, err := checkProgram(ctx, exe, path, state)
	if err != nil {
		return nil, answer.Version, errors.Join(fmt.Errorf("the new program %s: %w", path, err), exe.Close())
	}
	return exe, answer.Version, nil
}

// draft is our estate as it is now, for a program that only says what it thinks
// of it.
func (sh *shell) draft() (*os.File, error) {
	if sh.state.ours() == nil {
		return nil, errors.New("no epoch of ours serves")
	}
	e, err := sh.bequeath(func(c *child) (childEstate, error) { return c.outline(), nil })
	if err != nil {
		return nil, err
	}
	e.State.calm()
	return e.file()
}

// calm leaves out what will have ended by the time of the exec.
func (s *State) calm() {
	s.Reading, s.Ready, s.Rival, s.Leaving, s.Wanted = nil, nil, nil, nil, nil
	s.Gens = append([]Generation(nil), s.Gens...)
	for i := range s.Gens {
		if g := &s.Gens[i]; g.uncommitted() || g.Phase == Removing {
			s.drop(g.Epoch)
			return
		}
	}
}

func checkProgram(ctx context.Context, exe *os.File, path string, state *os.File) (Takeover, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	var answer Takeover
	stdout, stderr, status, err := process.Output(ctx, process.Spec{
		Path: path, Exe: exe, Args: os.Args[1:], Expendable: true, Inherit: []*os.File{state},
		Env: append(os.Environ(), CheckVariable+"=3"),
	}, 64<<10)
	if err != nil {
		return answer, fmt.Errorf("it can't be run: %w", err)
	}
	if json.Unmarshal(stdout, &answer) != nil {
		return answer, fmt.Errorf("it does not say whether it can take over (%v): is it an agent that knows of upgrades? %s", status, limited(strings.TrimSpace(string(stderr))))
	}
	if !answer.Takes || status != (process.Status{}) {
		return answer, fmt.Errorf("it can't take over: %s (%v)", answer.Error, status)
	}
	return answer, nil
}

// abandon ends an upgrade that has not come to its exec.
func (sh *shell) abandon(r *replacement, err error) {
	if sh.replacement != r {
		return
	}
	sh.replacement = nil
	r.exe.Close()
	select {
	case r.going <- err:
	default: // whoever asked has been told that it is about to happen
	}
	sh.step(UpgradeOver{From: sh.cfg.Version, To: r.to, Error: err.Error()})
}

// replace carries Replace out: first, while everything goes on, what takes time.
func (sh *shell) replace() {
	r := sh.replacement
	sh.background(func() {
		select {
		case r.going <- nil:
		default: // said before: something had come in between
		}
		ctx, cancel := context.WithTimeout(sh.ctx, flushTime)
		defer cancel()
		var sockets *control.Files
		if sh.server != nil {
			files, resume, err := sh.server.Pause(ctx)
			if err != nil {
				_ = sh.ask(ctx, func(sh *shell) { sh.abandon(r, err) })
				return
			}
			defer resume()
			sockets = &files
		}
		if sh.cfg.Flush != nil { // what was measured until now would be lost with us
			sh.cfg.Flush(ctx)
		}
		_ = sh.ask(context.WithoutCancel(ctx), func(sh *shell) {
			if sh.replacement == r {
				sh.abandon(r, sh.execute(r, sockets))
			}
		})
	})
}

// execute returns only when it has failed, with all as it was.
func (sh *shell) execute(r *replacement, sockets *control.Files) error {
	if u := sh.state.Upgrade; u == nil || !u.Going {
		return fmt.Errorf("the supervisor is no longer quiet: %s", sh.state.unquiet())
	}
	if t := sh.telling; t != nil {
		select {
		case <-t.done:
		default:
			return errors.New("an epoch is just being told about its health; try again")
		}
	}
	ctx, cancel := context.WithTimeout(sh.ctx, freezeTime)
	defer cancel()
	defer sh.thaw()
	e, err := sh.bequeath(func(c *child) (childEstate, error) { return sh.freeze(ctx, c) })
	if err != nil {
		return err
	}
	old, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer old.Close()
	e.Old, e.Sockets, e.New = int(old.Fd()), sockets, r.to
	state, err := e.file()
	if err != nil {
		return err
	}
	defer state.Close()
	var children []*process.Process
	for _, c := range sh.children {
		if c.proc != nil {
			children = append(children, c.proc)
		}
	}
	if sh.cfg.FlushLog != nil {
		sh.cfg.FlushLog()
	}
	return process.Exec(process.Replacement{
		Exe: r.exe, Args: os.Args, State: state, Keep: e.descriptors(), Children: children, Signals: sh.signals,
	})
}

// bequeath is all that the new program needs; of a child what take says.
func (sh *shell) bequeath(take func(*child) (childEstate, error)) (*estate, error) {
	e := &estate{
		Version: EstateVersion, Program: sh.cfg.Version, At: time.Now(), Args: os.Args,
		StateDir: sh.cfg.StateDir, BaseID: sh.cfg.BaseID, Marker: sh.cfg.ReadyMarkerPath, Control: sh.cfg.ControlSocket,
		State: sh.state.clone(), Concurrency: sh.concurrency, Wishes: sh.wishes, Started: sh.started, Ready: sh.ready,
		MarkerFD: noFD, Old: noFD, Traces: sh.trace.open(),
	}
	if f := sh.marker.File(); f != nil {
		e.MarkerFD = int(f.Fd())
	}
	for _, in := range sh.inputs {
		e.Inputs = append(e.Inputs, in.estate())
	}
	// The newest first: its relay asks its parent's end, which must stop after it.
	for _, epoch := range slices.Backward(slices.Sorted(maps.Keys(sh.children))) {
		ce, err := take(sh.children[epoch])
		if err != nil {
			return nil, fmt.Errorf("epoch %d: %w", epoch, err)
		}
		e.Children = append(e.Children, ce)
	}
	return e, nil
}

func (in *input) estate() inputEstate {
	b := in.binary
	return inputEstate{
		ID: in.id, Boot: in.boot, Hash: in.hash, Workers: in.workers, Mode: in.mode,
		Snapshot: fileEstate{int(in.snapshot.file.Fd()), in.snapshot.path()},
		Binary:   fileEstate{int(b.File.Fd()), b.Path}, BinaryHash: b.Hash, Version: b.Version, HotRestartVersion: b.HotRestartVersion,
	}
}

// outline is what is known of a child without stopping anything.
func (c *child) outline() childEstate {
	ce := childEstate{
		Epoch: c.epoch, Parent: c.parent, Foreign: c.foreign, Input: none, Admin: c.admin.Address(), Stderr: noFD,
		Known: c.known.Load(), Doubt: c.doubt, TookAdmin: c.tookAdmin.Load(),
		Sitter: c.sitter, Older: c.older[:],
	}
	if c.foreign || !c.isLaunched() {
		return ce
	}
	ce.Input, ce.Seated, ce.Lines = c.input.id, c.seated, c.tail.lines()
	if c.proc != nil {
		ce.PID = c.proc.Pid()
	}
	return ce
}

// freeze stops all that reads for a child.
func (sh *shell) freeze(ctx context.Context, c *child) (ce childEstate, err error) {
	if c.foreign {
		return c.outline(), nil
	}
	var relay *relayEstate
	if c.relay != nil {
		relay = &relayEstate{}
		if relay.State, err = c.relay.Freeze(ctx); err != nil {
			return ce, err
		}
		if relay.FD, relay.Envoy, err = c.relay.FDs(); err != nil {
			return ce, err
		}
		// One that nobody has asked since has not noticed yet.
		relay.State.Gone = relay.State.Gone || c.ofParent == nil && sh.children[c.parent] == nil
	}
	asParent, err := freezeParent(ctx, c.asParent)
	if err != nil {
		return ce, err
	}
	ofParent, err := freezeParent(ctx, c.ofParent)
	if err != nil {
		return ce, err
	}
	stderr, err := c.tail.freeze(ctx)
	if err != nil {
		return ce, err
	}
	ce = c.outline()
	ce.Relay, ce.AsParent, ce.OfParent, ce.Stderr = relay, asParent, ofParent, stderr
	return ce, nil
}

func freezeParent(ctx context.Context, p *envoy.Parent) (*parentEstate, error) {
	if p == nil {
		return nil, nil
	}
	var e parentEstate
	var err error
	if e.State, err = p.Freeze(ctx); err == nil {
		e.FD, e.Envoy, err = p.FDs()
	}
	return &e, err
}

// thaw lets everything go on that freeze has stopped, or was to stop.
func (sh *shell) thaw() {
	for _, c := range sh.children {
		if c.foreign || !c.isLaunched() {
			continue
		}
		c.tail.thaw()
		if c.relay != nil {
			c.relay.Thaw()
		}
		for _, p := range []*envoy.Parent{c.asParent, c.ofParent} {
			if p != nil {
				p.Thaw()
			}
		}
	}
}
