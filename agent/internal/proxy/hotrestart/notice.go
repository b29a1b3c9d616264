package hotrestart

import (
	"fmt"
	"strings"

	"aether.internal/agent/internal/proxy/control"
)

// Notice is how the supervisor is, in as much as a service manager wants to know.
type Notice struct {
	Served   bool // an epoch has served
	Changing bool // an epoch serves, and a handoff is wanted or under way
	Stopping bool
	Wishes   int    // how often a handoff was asked for
	Status   string // one line
}

// notice is what to tell now; wishes are counted by the shell.
func (s *State) notice(wishes int) Notice {
	return Notice{
		Served:   s.Served,
		Changing: s.Served && s.Stage == Running && (s.Wanted != nil || s.Reading != nil || s.Ready != nil || s.newcomer() != nil),
		Stopping: s.Stage != Running,
		Wishes:   wishes, Status: s.line(),
	}
}

// line is the state in one line, and the last failure unless a handoff has
// followed it.
func (s *State) line() string {
	line := s.name()
	if g := s.serving(); g != nil {
		line += fmt.Sprintf(", epoch %d serves", g.Epoch)
	}
	if n := s.newcomer(); n != nil {
		line += fmt.Sprintf(", epoch %d is %s", n.Epoch, n.Phase)
	}
	if s.Out {
		line += ", drained as asked"
	}
	if f := s.LastFailure; f != nil && (s.LastHandoff == nil || f.At.After(s.LastHandoff.At)) && s.name() != control.Stopping {
		text, _, _ := strings.Cut(f.Text, "\n")
		line += fmt.Sprintf("; epoch %d failed: %s: %s", f.Epoch, f.Step, limited(text))
	}
	return line
}

// notify tells when there is news.
func (sh *shell) notify() {
	if sh.cfg.Notify == nil {
		return
	}
	if now := sh.state.notice(sh.wishes); now != sh.noticed {
		sh.noticed = now
		sh.cfg.Notify(now)
	}
}
