package hotrestart

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"time"
)

// schedule is all that users and bad luck do in one run.
type schedule struct {
	seed  uint64
	deeds []deed
	pods  bool // several supervisors, and a kubelet
}

// deed is one thing that somebody does.
type deed struct {
	at   time.Duration
	what deedKind
	arg  byte
}

type deedKind byte

const (
	doSIGHUP deedKind = iota
	doEdit
	doReload
	doForce
	doBurst
	doPlane
	doKill
	doFreeze
	doNoMemory
	doPause
	doSIGTERM
	doSIGUSR1
	doNoFork
	doSeatHeld
	doUnreadable
	doHang
	doBlind
	doBusy
	doStream
	doAmbush
	doCheckFails
	doCrash
	doRoll
	doDelete
	doKillPod
	doFreezePod
	doReboot
	doTwin
	doUpgrade
	doClock
	deedKinds
)

// weights are how often each is drawn.
var weights = [deedKinds]int{
	doSIGHUP: 12, doEdit: 20, doReload: 8, doForce: 5, doBurst: 3, doPlane: 6, doKill: 8, doFreeze: 8, doNoMemory: 2,
	doPause: 4, doSIGTERM: 5, doSIGUSR1: 3, doNoFork: 2, doSeatHeld: 2, doUnreadable: 2, doHang: 1, doBlind: 2,
	doBusy: 2, doStream: 6, doAmbush: 14, doCheckFails: 3, doCrash: 3, doUpgrade: 5, doClock: 2,
}

// podWeights are those on a node of pods. Nobody but pods takes seats there.
var podWeights = [deedKinds]int{
	doSIGHUP: 4, doEdit: 8, doReload: 3, doForce: 2, doPlane: 5, doKill: 8, doFreeze: 6, doNoMemory: 2,
	doPause: 6, doSIGTERM: 1, doNoFork: 1, doUnreadable: 1, doBlind: 2, doBusy: 3, doStream: 5,
	doAmbush: 16, doCheckFails: 3, doCrash: 3,
	doRoll: 24, doDelete: 10, doKillPod: 8, doFreezePod: 4, doReboot: 2, doTwin: 3, doUpgrade: 5, doClock: 2,
}

// drawn is the schedule of a seed.
func drawn(seed uint64) schedule { return draw(schedule{seed: seed}, &weights) }

// drawnPods is that of a node of pods.
func drawnPods(seed uint64) schedule { return draw(schedule{seed: seed, pods: true}, &podWeights) }

func draw(s schedule, weights *[deedKinds]int) schedule {
	d := dice(s.seed, 4)
	at := time.Duration(0)
	for range 1 + d.IntN(14) {
		at += pauseOf(d)
		s.deeds = append(s.deeds, deed{at, drawKind(d, weights), byte(d.IntN(256))})
	}
	return s
}

// pauseOf is often so short that deeds meet in one handoff.
func pauseOf(d *rand.Rand) time.Duration {
	most := [...]time.Duration{20 * time.Millisecond, 300 * time.Millisecond, 3 * time.Second, 15 * time.Second, 60 * time.Second}
	return time.Duration(d.Float64() * float64(most[d.IntN(len(most))]))
}

func drawKind(d *rand.Rand, weights *[deedKinds]int) deedKind {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := d.IntN(sum)
	for k, w := range weights {
		if n -= w; n < 0 {
			return deedKind(k)
		}
	}
	return doSIGHUP
}

// decoded is the schedule that a fuzzer wrote: four bytes a deed.
func decoded(seed uint64, data []byte) schedule {
	s := schedule{seed: seed}
	at := time.Duration(0)
	for ; len(data) >= 4 && len(s.deeds) < 40; data = data[4:] {
		at += time.Duration(binary.LittleEndian.Uint16(data)) * time.Millisecond
		s.deeds = append(s.deeds, deed{at, deedKind(data[2]) % deedKinds, data[3]})
	}
	return s
}

// encoded is what decoded reads.
func (s schedule) encoded() []byte {
	var data []byte
	at := time.Duration(0)
	for _, d := range s.deeds {
		data = binary.LittleEndian.AppendUint16(data, uint16((d.at - at).Milliseconds()))
		data = append(data, byte(d.what), d.arg)
		at = d.at
	}
	return data
}

// play runs a schedule; the story is told if there is one.
func (s schedule) play(decide func(State, Event) (State, []Action), tweak func(*world), told *story) (broken *violation) {
	w := newWorld(s, decide)
	w.story = told
	if tweak != nil {
		tweak(w)
	}
	defer func() {
		if p := recover(); p != nil && w.rules.broken != nil {
			broken = w.rules.broken // and then nothing made sense any more
		} else if p != nil {
			broken = &violation{"no panic", fmt.Sprint(p)}
		}
	}()
	return w.run()
}
