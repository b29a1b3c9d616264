package hotrestart

import (
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// sendRetry is the pause of an Envoy whose answer found nobody behind the name,
// as in plain mode between a newcomer's death and the moment when we take its
// name (fact 4): one second.
const sendRetry = 1200 * time.Millisecond

const unread = "the serving epoch is stopped, and may still have to answer an earlier newcomer"

// outwait waits until a parent has answered what a dead newcomer of plain mode
// has asked: its answers would be taken for the next one's. Nobody knows what
// was asked, only that a parent which runs has answered after sendRetry; one that
// is stopped would keep the newcomer waiting as well. Where there is a relay, it
// tells the answers apart. false: the newcomer has been given up meanwhile.
func (sh *shell) outwait(c, parent *child, until time.Time) bool {
	if until.IsZero() {
		return true
	}
	b := backoff{50 * time.Millisecond, 100 * time.Millisecond}
	told := false
	for {
		if !parent.foreign && stopped(parent.proc.Pid()) {
			if !told {
				told = true
				sh.tell(c, Unverified{c.epoch, []string{unread}})
			}
			if soon := time.Now().Add(answering); soon.After(until) {
				until = soon
			}
		}
		if !time.Now().Before(until) {
			return true
		}
		if !b.wait(c.ctx) {
			return false
		}
	}
}

// answering is what an answer takes once a parent goes on.
const answering = 200 * time.Millisecond

// stopped tells whether a process was sent SIGSTOP, as far as /proc knows.
func stopped(pid int) bool {
	state, _ := envoy.ProcessState(pid)
	return state == 'T' || state == 't'
}
