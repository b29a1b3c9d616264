package hotrestart

import (
	"context"
	"fmt"
	"os"
	"time"

	"aether.internal/agent/internal/proxy/coordination"
	"aether.internal/agent/internal/proxy/envoy"
)

// peer is another supervisor's epoch that ours takes over from.
type peer struct {
	epoch   int
	sitter  envoy.Sitter // that very Envoy
	pod     string
	workers int // 0: unknown
	admins  []envoy.Address
	admin   envoy.Address // one of them, which answers for that epoch; else the first
	info    *envoy.ServerInfo
	known   *envoy.Resources
}

// survey finds out who else lives on this base-id, and waits while that is about
// to change. nil: nobody.
func (sh *shell) survey(ctx context.Context, id int) (*peer, *Refusal) {
	b := backoff{20 * time.Millisecond, 200 * time.Millisecond}
	began, since, waits, who := time.Now(), time.Now(), "", sh.sitters()
	for {
		c, err := sh.whoLives()
		if err != nil {
			return nil, &Refusal{Step: "look who lives", Text: err.Error(), Code: ExitTaken}
		}
		v := c.judge(sh.cfg.HandoffDeadline, sh.limits().longestTry())
		now := sh.sitters()
		if v.awaits != waits || now != who { // another one has all its time again
			since, waits, who = time.Now(), v.awaits, now
			sh.post(Awaits{id, waits})
		}
		over := time.Since(since) >= v.atMost || time.Since(began) >= sh.limits().longestTry()+goodbye
		switch {
		case v.awaits != "" && !over:
		case v.awaits != "" && (v.refused || v.newest >= 0 && sh.initialising()):
			return nil, &Refusal{Step: "look who lives", Text: "waited too long for " + v.awaits, Code: ExitTaken}
		case v.newest < 0:
			return nil, nil
		default:
			return sh.peerOf(v.newest), nil
		}
		if !b.wait(ctx) {
			return nil, &Refusal{Step: "look who lives", Text: context.Cause(ctx).Error(), Code: ExitUnexpected}
		}
	}
}

// initialising: the segment says that an Envoy is on its way to LIVE. Whoever
// attaches now exits, or has the next one do so (fact 2).
func (sh *shell) initialising() bool {
	blocked, err := envoy.SegmentBlocked(sh.cfg.BaseID)
	return err == nil && blocked
}

func (sh *shell) peerOf(epoch int) *peer {
	p := &peer{epoch: epoch, sitter: envoy.SitterAt(sh.dirs.Socket(epoch, "child", epoch))}
	if socket := sh.adminSocket(epoch); exists(socket) {
		p.admins = append(p.admins, envoy.Address{Path: socket})
	}
	if h, ok := coordination.ReadHeartbeat(sh.cfg.StateDir); ok && h.Epoch == epoch {
		p.pod, p.workers = h.Pod, h.Concurrency
		if a, err := envoy.ParseAddress(h.Admin); err == nil {
			p.admins = append(p.admins, a)
		}
	}
	return p
}

// cutsGrandparent tells whether a newcomer would have its parent end that one's
// own parent, which still drains: asked for its admin Envoy does that, and only a
// relay that leaves no end to Envoy's timer keeps it from it. In place a launch
// waits as well (rule 6).
func (sh *shell) cutsGrandparent(p *peer, in *input) bool {
	grandparent := p.epoch + envoy.Seats - 1
	if !sh.dirs.Lives(grandparent) {
		return false
	}
	return in.mode != ModeRelay || !sh.dirs.IsTaken(grandparent) && !sh.dirs.AnswersAreOurs(grandparent)
}

func (sh *shell) awaitGrandparent(ctx context.Context, id int, p *peer) *Refusal {
	grandparent := p.epoch + envoy.Seats - 1
	sh.post(Awaits{id, fmt.Sprintf("the epoch before %d to end, which still drains and would be cut", p.epoch)})
	ctx, cancel := context.WithTimeout(ctx, sh.cfg.HandoffDeadline)
	defer cancel()
	for b := (backoff{100 * time.Millisecond, 500 * time.Millisecond}); sh.dirs.Lives(grandparent); {
		if !b.wait(ctx) {
			return &Refusal{Step: "look who lives", Code: ExitTaken, Text: fmt.Sprintf(
				"the epoch before %d still drains after %s, and a handoff with UDP or without a relay would cut it; try again when it has ended",
				p.epoch, sh.cfg.HandoffDeadline)}
		}
	}
	sh.post(Awaits{id, ""})
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// meet asks the other pod's epoch what ours must know of it. It need not answer:
// another admin may have taken its address, or none be left.
func (sh *shell) meet(ctx context.Context, p *peer, in *input) {
	if in.boot.Admin != nil {
		p.admins = append(p.admins, *in.boot.Admin)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, address := range p.admins {
		admin := envoy.NewAdmin(address)
		info, err := admin.ServerInfo(ctx)
		if err != nil || info.Epoch != p.epoch {
			continue
		}
		p.admin, p.info, p.workers = address, &info, info.Concurrency
		if known, err := admin.Resources(ctx, in.asksXDS()); err == nil {
			p.known = &known
		}
		return
	}
	if len(p.admins) > 0 {
		p.admin = p.admins[0]
	}
	sh.log.Warn("the other pod's epoch has no admin that answers; the newcomer can't be compared with it", "epoch", p.epoch)
}

// uncoordinated refuses a first start beside an Envoy that has neither a seat nor
// a hot-restart socket: its admin's address is all that tells of it, and two
// Envoys at one port of SO_REUSEPORT would share its connections without a word.
func (sh *shell) uncoordinated(ctx context.Context, in *input) *Refusal {
	if in.boot.Admin == nil || sh.cfg.AdminPerEpoch {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	info, err := envoy.NewAdmin(*in.boot.Admin).ServerInfo(ctx)
	if err != nil { // nobody, or no Envoy: then ours says that it can't bind
		return nil
	}
	if c, err := sh.whoLives(); err == nil && c.anybody() {
		return nil // one of ours has started since; its seat will tell
	}
	return &Refusal{Step: "look who lives", Code: ExitTaken, Text: fmt.Sprintf(
		"an Envoy %s that isn't coordinated with us answers at the admin address %s; stop it first (a pod that can't hand over has to be deleted before this one starts), or choose another address",
		info.Version, in.boot.Admin)}
}

// checkPeer refuses what can't follow the other pod's epoch, and settles the
// number of workers: it never falls (rule 5), and unless it was given it is that
// epoch's.
func (sh *shell) checkPeer(p *peer, in *input, workers int) (int, *Refusal) {
	if b := in.binary; p.info != nil && p.info.HotRestartVersion != "" && p.info.HotRestartVersion != b.HotRestartVersion {
		return 0, &Refusal{Step: "compare hot-restart versions", Code: ExitBinary, Text: fmt.Sprintf(
			"%s (Envoy %s) speaks %s, the other pod's Envoy %s speaks %s: they can't hand over; delete that pod first",
			b.Path, b.Version, b.HotRestartVersion, p.info.Version, p.info.HotRestartVersion)}
	}
	switch {
	case p.workers == 0 || p.workers == workers:
		return workers, nil
	case !sh.pinned:
		return p.workers, nil
	case workers < p.workers:
		return 0, &Refusal{Step: "compare concurrency", Code: ExitUsage, Text: fmt.Sprintf(
			"--concurrency says %d and the other pod's epoch %d has %d: fewer workers than before reset connections; say %d or more, or delete that pod first",
			workers, p.epoch, p.workers, p.workers)}
	case hasQUIC(in.boot.Listeners):
		return 0, &Refusal{Step: "compare concurrency", Code: ExitUsage, Text: fmt.Sprintf(
			"--concurrency says %d and the other pod's epoch %d has %d: with QUIC listeners the number of workers can't change; say %d, or delete that pod first",
			workers, p.epoch, p.workers, p.workers)}
	}
	sh.log.Warn("more workers than the other pod's epoch has", "workers", workers, "before", p.workers)
	return workers, nil
}

func hasQUIC(listeners []envoy.Listener) bool {
	for _, l := range listeners {
		if l.QUIC {
			return true
		}
	}
	return false
}
