package hotrestart

import "time"

// user is whoever edits, reloads, kills and stops, and the bad luck that waits.
type user struct {
	w    *world
	file *bootstrap // what the bootstrap's file holds
	made int

	waiters int // callers of reload so far

	hangs, unreadable, noFork int // how many of the next ones fail so
	blindUntil, checkUntil    time.Duration
	ambushes                  []ambush
}

// spend uses up one of what waits.
func (u *user) spend(n *int) bool {
	if *n > 0 {
		*n--
		return true
	}
	return false
}

// follow enters the schedule's deeds, and the end of the run after them.
func (u *user) follow(s schedule) {
	d := dice(s.seed, 5)
	u.file = &bootstrap{dynamic: d.IntN(3) == 0, udp: d.IntN(10) == 0, uncountable: d.IntN(10) == 0}
	if u.file.dynamic && !u.w.plain && d.IntN(2) == 0 {
		u.file.fetch = 15 * time.Second
	}
	last := time.Duration(0)
	for _, d := range s.deeds {
		u.w.after(d.at, func() { u.do(d) })
		last = d.at
	}
	u.w.after(last+time.Second, u.settle)
}

func (u *user) do(d deed) {
	w := u.w
	seconds := time.Duration(1+d.arg%60) * time.Second
	switch d.what {
	case doSIGHUP:
		u.trigger(Triggered{By: TriggerSignal}, "SIGHUP")
	case doEdit:
		u.edit(d.arg)
	case doReload:
		u.reload(false, "proxyctl reload --wait")
	case doForce:
		u.reload(true, "proxyctl reload --wait --force")
	case doBurst:
		for i := range 20 {
			w.after(time.Duration(i)*seconds/20, func() { u.trigger(Triggered{By: TriggerSignal}, "SIGHUP") })
		}
	case doPlane:
		w.plane.become(mood(d.arg % 3))
	case doSIGTERM:
		u.terminate()
	case doSIGUSR1:
		w.tell("user", "SIGUSR1")
		u.tell(func(s *simShell) { s.step(Reopen{}) })
	case doStream:
		w.clients.stream(5 * seconds)
	case doUpgrade:
		w.tell("user", "proxyctl upgrade")
		u.tell(func(s *simShell) { s.step(UpgradeWanted{}) })
	case doClock:
		w.wall += (time.Duration(d.arg) - 128) * 24 * time.Hour
		w.tell("fault", "the clock is set: %s from where it was", w.wall)
	default:
		u.misfortune(d, seconds)
	}
}

func (u *user) misfortune(d deed, seconds time.Duration) {
	w := u.w
	switch d.what {
	case doKill:
		u.strike(u.victim(d.arg), "signal 9 (SIGKILL), by somebody else")
	case doCrash:
		u.strike(u.victim(d.arg), "signal 11 (SIGSEGV)")
	case doNoMemory:
		u.strike(w.kernel.biggest(), "signal 9 (SIGKILL), out of memory")
	case doFreeze:
		u.freeze(u.victim(d.arg), 3*seconds)
	case doPause:
		u.pause(w.newest(), seconds)
	case doAmbush:
		u.lieInWait(d.arg)
	default:
		if w.kubelet == nil || !u.toPods(d, seconds) {
			u.hinder(d, seconds)
		}
	}
}

// toPods is what happens to pods.
func (u *user) toPods(d deed, seconds time.Duration) bool {
	k := u.w.kubelet
	switch d.what {
	case doRoll:
		k.roll()
	case doDelete:
		k.delete(k.pod(d.arg))
	case doKillPod:
		k.kill(k.pod(d.arg))
	case doFreezePod:
		u.freezePod(k.pod(d.arg), seconds)
	case doReboot:
		k.reboot(d.arg%2 == 0)
	case doTwin:
		k.create()
	default:
		return false
	}
	return true
}

// freezePod stops all of a pod's processes.
func (u *user) freezePod(p *simPod, d time.Duration) {
	if p == nil || p.s == nil || p.s.dead || p.s.over {
		return
	}
	u.pause(p.s, d)
	for _, e := range u.w.kernel.procs {
		if e.owner == p.s {
			u.freeze(e, d)
		}
	}
}

func (u *user) pause(s *simShell, d time.Duration) {
	if s == nil {
		return
	}
	u.w.tell("fault", "SIGSTOP to %s, for %s", s.name, d)
	s.pausedUntil = max(s.pausedUntil, u.w.now+d)
	s.excused += d
	u.w.rules.faults++
}

// hinder makes something fail or wait that the supervisor needs.
func (u *user) hinder(d deed, seconds time.Duration) {
	w := u.w
	switch d.what {
	case doNoFork:
		w.tell("fault", "the next fork fails")
		u.noFork = 1
	case doSeatHeld:
		seat := d.arg % 3
		w.tell("fault", "seat %d is held by somebody else for %s", seat, seconds)
		w.kernel.foreign[seat] = true
		w.after(seconds, func() { w.kernel.foreign[seat] = false })
	case doUnreadable:
		w.tell("fault", "the bootstrap can't be read once")
		u.unreadable = 1
	case doHang:
		w.tell("fault", "the next validator hangs")
		u.hangs = 1
	case doBlind:
		w.tell("fault", "nobody can count connections for %s", seconds)
		u.blindUntil = w.now + seconds
	case doBusy:
		w.tell("fault", "the machine is busy for %s", seconds)
		w.slowUntil = w.now + seconds
	case doCheckFails:
		w.tell("fault", "the verify command fails for %s", seconds)
		u.checkUntil = w.now + seconds
	}
}

// trigger reaches the owner as a signal or the watcher's word.
func (u *user) trigger(t Triggered, what string) {
	u.w.tell("user", "%s", what)
	u.tell(func(s *simShell) { s.step(t) })
}

// tell does something to the newest supervisor, in its own process.
func (u *user) tell(do func(*simShell)) {
	if s := u.w.newest(); s != nil {
		s.ours(0, func() { do(s) })
	}
}

// reload is a caller that waits for its answer.
func (u *user) reload(force bool, what string) int {
	u.waiters++
	waiter := u.waiters
	u.w.tell("user", "%s", what)
	u.tell(func(s *simShell) {
		if s.state.Stage != Done { // else the caller is told so by the shell
			u.w.rules.owed[waiter] = s
		}
		s.step(Triggered{By: TriggerReload, Force: force, Waiter: waiter})
	})
	return waiter
}

// terminate is SIGTERM to the supervisor.
func (u *user) terminate() {
	u.w.tell("user", "SIGTERM")
	u.tell(func(s *simShell) { s.step(Stop{By: "terminated"}) })
}

// edit writes another bootstrap, good or bad, and the watcher sees it.
func (u *user) edit(arg byte) {
	u.made++
	b := *u.file
	b.id, b.flaw, b.slow = u.made, flawNone, 0
	switch arg % 16 {
	case 0, 1:
		b.flaw = flawInvalid
	case 2, 3:
		b.flaw = flawBusyPort
	case 4:
		b.flaw = flawDies
	case 5:
		b.flaw = flawCrashes
	case 6:
		b.slow = 8 * time.Second
	case 7:
		b.slow = 15 * time.Second
	case 8:
		b.udp = !b.udp
	case 9:
		b.admin++
	case 10:
		b.uncountable = !b.uncountable
	case 11, 12:
		b.dynamic, b.fetch = true, time.Duration(arg>>4%3)*15*time.Second
	case 13:
		b.id = u.file.id // touched, no more
		u.made--
	}
	u.write(&b)
}

func (u *user) write(b *bootstrap) {
	u.file = b
	u.w.tell("user", "writes %s", b.describe())
	for _, s := range u.w.living() {
		s.ours(100*time.Millisecond, func() { s.post(Triggered{By: TriggerConfig}, nil) })
	}
}
