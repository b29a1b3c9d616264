package hotrestart

import (
	"slices"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// Mode is how a newcomer takes over from its parent (docs/concepts.md).
type Mode int

const (
	// ModeRelay: verified before it is committed; the parent ends when idle or
	// at its limit.
	ModeRelay Mode = iota
	// ModeUDP: as ModeRelay until the commit; then Envoy's own timer is the
	// parent's limit, because UDP listeners stay paused until it fires.
	ModeUDP
	// ModePlain: no relay. The newcomer commits itself when it is LIVE and only
	// Envoy's parent-shutdown ends the parent.
	ModePlain
)

func (m Mode) String() string { return [...]string{"relay", "udp", "plain"}[m] }

// Phase is where an epoch stands in its life.
type Phase int

const (
	Starting Phase = iota // forked, not LIVE
	Live                  // LIVE, not verified; its parent has not been told to drain
	Serving               // committed
	Draining              // its successor is committed
	Ending                // told to end; killed at its deadline
	Removing              // a newcomer that is being taken back
)

func (p Phase) String() string {
	return [...]string{"starting", "live", "serving", "draining", "ending", "removing"}[p]
}

// Stage is where the supervisor stands in its own life.
type Stage int

const (
	Running  Stage = iota
	Stopping       // asked to stop: takes the newcomer back, then waits for connections
	Closing        // every epoch has been told to end
	Done
)

// Input is a validated bootstrap and binary, ready to be launched.
type Input struct {
	ID             int    // the shell's handle
	Config, Binary string // content hashes
	Mode           Mode
}

func (i Input) same(j Input) bool { return i.Config == j.Config && i.Binary == j.Binary }

// Trigger is why a handoff is wanted.
type Trigger int

const (
	TriggerStart Trigger = iota
	TriggerSignal
	TriggerConfig
	TriggerBinary
	TriggerReload
	TriggerRespawn // the newest epoch died while its parent still drains
	TriggerHeal    // the serving epoch lost its admin
)

func (t Trigger) String() string {
	return [...]string{"start", "signal", "config", "binary", "reload", "respawn", "heal"}[t]
}

// Want is a wish for a handoff; wishes that wait collapse into one.
type Want struct {
	Triggers []Trigger
	Force    bool
	Since    time.Time
	Waiters  []int // callers of reload, to be answered
}

// watchOnly tells whether nobody asked but the watcher: then an unchanged input
// is no reason to restart.
func (w Want) watchOnly() bool {
	for _, t := range w.Triggers {
		if t != TriggerConfig && t != TriggerBinary {
			return false
		}
	}
	return true
}

func (w *Want) merge(o Want) {
	// Concat copies: older states share these slices.
	for _, t := range o.Triggers {
		if !slices.Contains(w.Triggers, t) {
			w.Triggers = slices.Concat(w.Triggers, []Trigger{t})
		}
	}
	if w.Since.IsZero() {
		w.Since = o.Since
	}
	w.Force = w.Force || o.Force
	w.Waiters = slices.Concat(w.Waiters, o.Waiters)
}

// Generation is one living Envoy.
type Generation struct {
	Epoch    int
	Phase    Phase
	Input    Input
	Want     Want // what it was launched for
	Deadline time.Time
	Limit    bool // Deadline is a draining epoch's limit

	Pid int
	Prep
	LaunchedAt   time.Time
	ForkedAt     time.Time
	LiveAt       time.Time
	CommittedAt  time.Time
	DrainingFrom time.Time
	Missing      []string // what the newest verification missed

	Connections int // -1: unknown
	Zeros       int // looks in a row that saw no connection
	Answered    bool
	Reopen      bool   // a log reopen that waits for its first answer
	Superseded  bool   // taken back for a newer input
	Reaped      bool   // a newcomer that ended by itself
	EndedBy     string // why it was told to end, or ended by itself
	Respawns    int    // how often this number has been started again
	Foreign     bool   // another supervisor's: we never signal, drain or count it
	Again       bool   // removed because another supervisor was faster

	SilentFrom time.Time // since when its admin has not answered; zero: it does
	Asking     bool      // its hot-restart socket is being asked
	Told       bool      // the log has this silence
	Killed     bool      // the log has that it ignored SIGTERM
}

func (g *Generation) uncommitted() bool { return g.Phase == Starting || g.Phase == Live }

// Prep is when an input was read and when that had succeeded; the first is zero
// for one that was there already.
type Prep struct{ ReadAt, ReadyAt time.Time }

// Reading is an input that is being read and validated.
type Reading struct {
	ID     int
	Want   Want
	At     time.Time
	Survey bool   // it looks who else lives
	Waits  string // what another supervisor does meanwhile
}

// Ready is a validated input that waits for its launch.
type Ready struct {
	Want     Want
	Input    Input
	Surveyed bool // it is known who else lives
	Prep
}

// Failure is a handoff that did not happen, or an epoch that ended by itself.
type Failure struct {
	At    time.Time
	Epoch int
	Step  string
	Text  string
	Log   []string // the newcomer's own last lines
}

// Limits are the times the core decides by.
type Limits struct {
	Handoff time.Duration // from fork to verified
	GiveWay time.Duration // an uncommitted newcomer this old gives way to a newer input
	Drain   time.Duration // wait for connections at a stop
	Parent  time.Duration // a draining epoch's limit
	Kill    time.Duration // from SIGTERM to SIGKILL
	Silent  time.Duration // a serving epoch that answers nothing for so long is ended

	Successor time.Duration // a stop waits so long for another supervisor to attach
}

// State is everything the supervisor decides by.
type State struct {
	Limits Limits
	Stage  Stage
	Gens   []Generation // living epochs, oldest first

	Wanted  *Want    // the newest wish, not yet read
	Reading *Reading // at most one input is being read
	Ready   *Ready
	NextID  int

	Lost *Lost // set while the newest epoch is dead and may be started again
	Heal *Heal // set while the serving epoch has no admin

	Rival    *Rival   // another supervisor's successor of our newest epoch
	Leaving  *Leaving // a stop that waits for a successor
	Orphaned bool     // that successor has gone, and nobody serves yet

	StopBy time.Time // when the wait for connections ends
	Skip   bool      // a second stop: no waiting
	Code   int       // exit code once Done
	Reason string

	Out      bool // of service: somebody asked for it
	ToldWait int  // 1 + the epoch that the log says a handoff waits for; 0: none

	LastFailure *Failure
	LastHandoff *Handoff  // the last commit
	History     []Handoff // the last tries, oldest first
	Repairs     int       // of the shared segment's flag
	Served      bool      // some epoch has been committed

	Upgrade     *Upgrade  // of our own program, that is wanted
	LastUpgrade *Upgraded // nil: there was none
	Upgrades    int       // how often our program was replaced
}

// clone shares nothing that next writes to.
func (s State) clone() State {
	s.Gens = slices.Clone(s.Gens)
	s.Wanted, s.Reading, s.Ready = copied(s.Wanted), copied(s.Reading), copied(s.Ready)
	s.Lost, s.Heal = copied(s.Lost), copied(s.Heal)
	s.Rival, s.Leaving, s.Upgrade = copied(s.Rival), copied(s.Leaving), copied(s.Upgrade)
	return s
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// gen is a living epoch, nil when there is none of that number.
func (s *State) gen(epoch int) *Generation {
	for i := range s.Gens {
		if s.Gens[i].Epoch == epoch {
			return &s.Gens[i]
		}
	}
	return nil
}

func (s *State) where(match func(*Generation) bool) *Generation {
	for i := range s.Gens {
		if match(&s.Gens[i]) {
			return &s.Gens[i]
		}
	}
	return nil
}

// serving is the committed epoch that no other has followed, whosever it is.
func (s *State) serving() *Generation {
	return s.where(func(g *Generation) bool { return g.Phase == Serving })
}

// ours is the serving epoch if it is our own.
func (s *State) ours() *Generation {
	if g := s.serving(); g != nil && !g.Foreign {
		return g
	}
	return nil
}

// head is our newest epoch that is committed, and may have been followed: at a stop
// also one that another supervisor's had followed before.
func (s *State) head() *Generation {
	if g := s.ours(); g != nil || s.Stage != Stopping || s.serving() != nil {
		return g
	}
	if g := s.heir(); g != nil && !g.Foreign {
		return g
	}
	return nil
}

// foreign is the epoch of another supervisor that we take over from, or have.
func (s *State) foreign() *Generation {
	return s.where(func(g *Generation) bool { return g.Foreign })
}

// sits tells whether an epoch of ours has the seat of that number.
func (s *State) sits(epoch int) bool {
	return s.where(func(g *Generation) bool { return !g.Foreign && g.Epoch%envoy.Seats == epoch%envoy.Seats }) != nil
}

// own is how many living epochs are ours.
func (s *State) own() int {
	n := 0
	for i := range s.Gens {
		if !s.Gens[i].Foreign {
			n++
		}
	}
	return n
}

// servingEpoch is -1 when none of ours serves.
func (s *State) servingEpoch() int {
	if g := s.ours(); g != nil {
		return g.Epoch
	}
	return -1
}

// heir is who the next newcomer takes over from: the serving epoch or, when it
// has died, its newest draining parent.
func (s *State) heir() *Generation {
	heir := s.serving()
	for i := range s.Gens {
		if g := &s.Gens[i]; heir == nil || heir.Phase != Serving {
			if g.Phase == Draining && (heir == nil || g.Epoch > heir.Epoch) {
				heir = g
			}
		}
	}
	return heir
}

// newcomer is the one epoch that is not committed.
func (s *State) newcomer() *Generation {
	return s.where(func(g *Generation) bool { return g.uncommitted() || g.Phase == Removing })
}

func (s *State) drop(epoch int) {
	s.Gens = slices.DeleteFunc(s.Gens, func(g Generation) bool { return g.Epoch == epoch })
}

// needs tells whether an input lives, or is about to.
func (s *State) needs(input int) bool {
	return s.Ready != nil && s.Ready.Input.ID == input || s.Lost != nil && s.Lost.Input.ID == input ||
		s.where(func(g *Generation) bool { return g.Input.ID == input }) != nil
}
