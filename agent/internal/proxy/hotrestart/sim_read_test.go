package hotrestart

import (
	"fmt"
	"time"
)

// This file reads and validates inputs, as input.go does.

// flaw is what is wrong with a bootstrap or a binary, found at different times.
type flaw int

const (
	flawNone     flaw = iota
	flawInvalid       // validation sees it
	flawBusyPort      // found when it listens
	flawDies          // found when it initialises
	flawCrashes       // three seconds after LIVE
)

func (f flaw) String() string {
	return [...]string{"", "invalid", "a busy port", "dies in init", "crashes 3 s after LIVE"}[f]
}

// bootstrap is a version of the user's file and binary.
type bootstrap struct {
	id          int
	flaw        flaw
	dynamic     bool
	fetch       time.Duration // initial_fetch_timeout; 0: for ever
	udp         bool
	admin       int // its address
	slow        time.Duration
	uncountable bool // TPROXY: nobody can count its connections
}

func (b *bootstrap) describe() string {
	text := fmt.Sprintf("content %d", b.id)
	for _, is := range []struct {
		so   bool
		what string
	}{
		{b.flaw != flawNone, b.flaw.String()}, {b.udp, "UDP"}, {b.admin > 0, fmt.Sprintf("admin %d", b.admin)},
		{b.slow > 0, fmt.Sprintf("starts in %s", b.slow)}, {b.uncountable, "can't be counted"},
		{b.dynamic, fmt.Sprintf("asks a control plane for %s", b.fetch)},
	} {
		if is.so {
			text += ", " + is.what
		}
	}
	return text
}

// read validates the newest input → Prepared. First it finds out who else lives:
// the newest input counts when it is our turn.
func (s *simShell) read(a Read) {
	if !a.Survey {
		s.validate(a, nil)
		return
	}
	s.survey(a.ID, func(p *Peer, failed *Refusal) {
		if failed != nil {
			s.step(Prepared{ID: a.ID, Failed: failed})
			return
		}
		s.validate(a, p)
	})
}

func (s *simShell) validate(a Read, peer *Peer) {
	boot, found := s.w.user.file, s.found
	var serving *simInput
	if g := s.state.ours(); g != nil {
		serving = s.children[g.Epoch].input
	}
	if peer != nil && s.cutsGrandparent(peer, s.mode(boot, serving, peer)) {
		s.awaitGrandparent(a, peer)
		return
	}
	took := s.w.between(s.rng, 45*time.Millisecond, 200*time.Millisecond) + boot.slow
	hangs := s.w.user.spend(&s.w.user.hangs)
	if hangs {
		took = validateTime
	}
	s.w.tell(s.name, "reads content %d", boot.id)
	s.ours(took, func() {
		p := Prepared{ID: a.ID, Failed: s.refuse(boot, serving != nil || peer != nil, hangs && !a.First), Peer: peer}
		if p.Failed == nil {
			in := &simInput{boot, s.mode(boot, serving, peer), found}
			p.Input = Input{ID: a.ID, Config: fmt.Sprint(boot.id), Binary: "envoy", Mode: in.mode}
			s.inputs[a.ID] = in
		}
		s.step(p)
	})
}

func (s *simShell) refuse(b *bootstrap, follows, hung bool) *Refusal {
	switch {
	case s.w.user.spend(&s.w.user.unreadable):
		return &Refusal{Step: "read the bootstrap", Text: "permission denied", Code: ExitBootstrap}
	case hung:
		return &Refusal{Step: "validate", Text: "the validator could not run", Code: ExitBinary}
	case b.flaw == flawInvalid:
		return &Refusal{Step: "validate", Text: "unknown field", Code: ExitBootstrap}
	case s.w.plain && follows && b.dynamic && b.fetch > 0:
		return &Refusal{Step: "check the bootstrap", Text: "say initial_fetch_timeout: 0s", Code: ExitBootstrap}
	}
	return nil
}

func (s *simShell) mode(b *bootstrap, serving *simInput, peer *Peer) Mode {
	udp := b.udp || serving != nil && serving.boot.udp
	if peer != nil {
		p := s.w.kernel.at(peer.Epoch)
		udp = udp || p != nil && p.boot.udp
	}
	switch {
	case s.w.plain:
		return ModePlain
	case udp:
		return ModeUDP
	}
	return ModeRelay
}
