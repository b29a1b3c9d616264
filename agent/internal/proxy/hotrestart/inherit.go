package hotrestart

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/envoy"
	"aether.internal/agent/internal/proxy/process"
)

// This file is what a program does that has replaced another one: it goes on with
// what that one has left. Until all of it is taken nothing is changed, so that the
// old program can be executed again.

// heir is an estate while it is being taken.
type heir struct {
	*estate
	*shell
	file   *os.File // where the estate is
	opened []*os.File
}

// inherit fills a new shell with what was left, and starts what watches it.
func (sh *shell) inherit(file *os.File) error {
	h := &heir{shell: sh, file: file}
	var err error
	if h.estate, err = readEstate(file); err != nil {
		return err
	}
	untaken = h
	if err := h.take(); err != nil {
		return err
	}
	untaken, takenOver = nil, true
	h.goOn()
	return nil
}

// take makes everything anew around the descriptors that were left.
func (h *heir) take() (err error) {
	defer func() {
		if r := recover(); r != nil { // what is left may be anything
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if err := h.fits(&h.cfg); err != nil {
		return err
	}
	limits := h.shell.state.Limits
	rebase(h.estate, h.At, time.Now())
	h.shell.state = h.State
	h.shell.state.Limits = limits
	h.concurrency, h.wishes, h.started, h.ready, h.examined = h.Concurrency, h.Wishes, h.Started, h.Ready, true
	binaries := map[int]*envoy.Binary{}
	for _, in := range h.Inputs {
		if err := h.takeInput(in, binaries); err != nil {
			return err
		}
	}
	for _, c := range h.estate.Children {
		if err := h.takeChild(c); err != nil {
			return fmt.Errorf("epoch %d: %w", c.Epoch, err)
		}
	}
	if h.MarkerFD != noFD {
		h.marker.Inherit(os.NewFile(uintptr(h.MarkerFD), h.Marker))
	}
	if s := h.Sockets; s != nil {
		path := h.cfg.ControlSocket
		if h.server, err = control.Inherit(path, os.NewFile(uintptr(s.Lock), path+".lock"), h.duplicate(s.Listener, path)); err != nil {
			return err
		}
	}
	// Last of all: a relay takes what its Envoy has asked meanwhile.
	for _, c := range h.estate.Children {
		if err := h.takeRelay(c); err != nil {
			return fmt.Errorf("epoch %d: %w", c.Epoch, err)
		}
	}
	return nil
}

func (h *heir) takeInput(e inputEstate, binaries map[int]*envoy.Binary) (err error) {
	b := binaries[e.Binary.FD]
	if b == nil { // inputs share it
		if b, err = envoy.InheritBinary(e.Binary.open(), e.BinaryHash, e.Version, e.HotRestartVersion); err != nil {
			return err
		}
		binaries[e.Binary.FD] = b
	}
	h.inputs[e.ID] = &input{
		id: e.ID, boot: e.Boot, hash: e.Hash, snapshot: &snapshot{e.Snapshot.open()}, workers: e.Workers, binary: b, mode: e.Mode,
	}
	return nil
}

// takeChild makes everything of a child but its relay.
func (h *heir) takeChild(e childEstate) (err error) {
	ctx, stop := context.WithCancel(h.ctx)
	c := &child{
		epoch: e.Epoch, parent: e.Parent, foreign: e.Foreign, sitter: e.Sitter, admin: envoy.NewAdmin(e.Admin), ctx: ctx, stop: stop,
		launched: make(chan struct{}), committed: true, doubt: e.Doubt,
	}
	close(c.launched)
	copy(c.older[:], e.Older)
	c.known.Store(e.Known)
	h.children[e.Epoch] = c
	if e.Foreign {
		return nil
	}
	c.tail = newTail(h.log, e.Epoch)
	c.tail.ring = e.Lines
	c.live, c.hasty, c.seated = make(chan struct{}), make(chan struct{}), e.Seated
	close(c.live)
	c.tookAdmin.Store(e.TookAdmin)
	if c.input, c.proc = h.inputs[e.Input], process.Child(e.PID); c.input == nil || c.proc == nil {
		return fmt.Errorf("input %d or pid %d was not handed over", e.Input, e.PID)
	}
	if e.AsParent != nil {
		c.asParent, err = h.takeParent(*e.AsParent, h.dirs.Socket(c.epoch, "parent", c.epoch), h.dirs.Answers(c.epoch), c.epoch, e.PID)
	}
	return err
}

func (h *heir) takeParent(e parentEstate, socket, answers string, epoch, pid int) (*envoy.Parent, error) {
	from := envoy.Resumed{Socket: h.duplicate(e.FD, answers), Envoy: h.duplicate(e.Envoy, socket), PID: pid}
	return envoy.ResumeParent(from, socket, answers, e.State, h.log.With("epoch", epoch))
}

// takeRelay comes when all parents' ends are there.
func (h *heir) takeRelay(e childEstate) (err error) {
	c := h.children[e.Epoch]
	var from *envoy.Parent
	if p := h.children[e.Parent]; p != nil {
		from = p.asParent
	}
	if e.OfParent != nil {
		timed := c.input.mode == ModeUDP
		from, err = h.takeParent(*e.OfParent, h.dirs.Socket(e.Parent, "parent", e.Parent), h.dirs.Taken(e.Epoch, timed), e.Parent, 0)
		if err != nil {
			return err
		}
		c.ofParent = from
	}
	if e.Relay == nil {
		return nil
	}
	o := h.relayOptions(c, h.started)
	o.Parent = from
	fromRelay := envoy.Resumed{Socket: h.duplicate(e.Relay.FD, o.Listen), Envoy: h.duplicate(e.Relay.Envoy, o.Child), PID: e.PID}
	c.relay, err = envoy.ResumeRelay(fromRelay, o, e.Relay.State)
	return err
}

// duplicate is for package net, which makes one of its own again: the number that
// was left stays open for the way back.
func (h *heir) duplicate(fd int, name string) *os.File {
	if fd == noFD {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	h.opened = append(h.opened, f)
	return f
}

// goOn starts everything that watches, now that nothing can fail any more.
func (h *heir) goOn() {
	for _, f := range h.opened {
		f.Close()
	}
	os.NewFile(uintptr(h.Old), "old program").Close()
	h.trace.reopen(h.Traces)
	for _, e := range h.estate.Children {
		c := h.children[e.Epoch]
		if c.foreign {
			h.watchPeer(c)
			continue
		}
		h.background(func() { h.reap(c) })
		if e.Stderr == noFD {
			close(c.tail.ended)
		} else {
			pipe := os.NewFile(uintptr(e.Stderr), "stderr of Envoy")
			h.background(func() { c.tail.read(pipe) })
		}
		switch g := h.shell.state.gen(e.Epoch); {
		case g == nil:
		case g.Phase == Draining:
			h.count(c)
		case g.Phase == Serving && !g.Answered: // committed by force, or without a relay
			h.background(func() { h.verify(c) })
		}
	}
	serving := h.children[h.shell.state.ours().Epoch]
	h.binary, h.older = serving.input.binary, serving.older
	h.watch(serving.input)
	h.guard(serving)
	h.lookout(serving.epoch)
	h.file.Close()
	if h.Failed != "" {
		h.step(UpgradeOver{From: h.cfg.Version, To: h.New, Error: h.Failed})
		return
	}
	h.step(TookOver{From: h.Program, To: h.cfg.Version})
}

// untaken holds on to what was taken so far, whose descriptors must stay open; nil
// once all of it is, or nothing was left.
var untaken *heir

// GiveBack executes the old program again, which finds everything as it has left
// it, when this one has replaced it and could not go on; why says so. It returns
// when there is nothing to give back, or that failed; once only is it tried.
func GiveBack(why string) error {
	file := process.Inherited()
	if file == nil || takenOver {
		return nil
	}
	e, err := readEstate(file)
	if err != nil || e.Failed != "" {
		return err
	}
	e.Failed = fmt.Sprintf("the new program %s can't go on: %s", e.New, why)
	state, err := e.file()
	if err != nil {
		return err
	}
	var children []*process.Process
	for _, c := range e.Children {
		if p := process.Child(c.PID); p != nil {
			children = append(children, p)
		}
	}
	err = process.Exec(process.Replacement{
		Exe: os.NewFile(uintptr(e.Old), "old program"), Args: e.Args, State: state, Keep: e.descriptors(), Children: children,
		Signals: make(chan os.Signal, 1),
	})
	runtime.KeepAlive(untaken)
	return err
}

// takenOver tells that an inherited state is ours.
var takenOver bool
