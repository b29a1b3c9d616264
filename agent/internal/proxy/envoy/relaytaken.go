package envoy

import (
	"time"

	"golang.org/x/sys/unix"
)

// takenMark is what a relay sends to itself once the newcomer has read all that
// was sent to it. It comes after every request that the newcomer sent before it
// read: such a request decides what the answer is finished with.
var takenMark = []byte("aether: the beginning of an answer was read")

// askIfTaken sends the mark, unless the newcomer has yet to read.
func (r *Relay) askIfTaken() {
	if !r.AllRead() {
		return
	}
	r.conn.SetWriteDeadline(time.Now().Add(time.Second))
	if _, err := r.conn.WriteToUnix(takenMark, unixgram(r.opts.Listen)); err != nil {
		r.opts.Log.Warn("relay: can't reach itself", "error", err)
	}
}

// AllRead tells whether nothing that was sent waits in a receiver's queue: the
// parent has read what was passed to it, the newcomer what was answered.
func (r *Relay) AllRead() bool {
	raw, err := r.conn.SyscallConn()
	if err != nil {
		return false
	}
	waiting := -1
	err = raw.Control(func(fd uintptr) { waiting, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	return err == nil && waiting == 0
}

// Pauses between two looks at the newcomer's queue. One that waits reads at
// once; later looks are for one that is stopped.
const (
	firstLook = 2 * time.Millisecond
	mostLook  = time.Second
)

// answerData is what an output sends to the newcomer, nil for nothing.
func (o relayOutput) answerData(firstStart time.Time) []byte {
	if o.part == beginning {
		return answerBegun
	}
	data := answerFor(o.answer, firstStart)
	if o.part == rest && data != nil {
		return restOf(data)
	}
	return data
}
