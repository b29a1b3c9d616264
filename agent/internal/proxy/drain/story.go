package drain

import "time"

// What a drain says: each phase as it begins, the number of connections
// now and then, each call that fails. docs/router.md has the story.

func (sh *shell) enter(p Phase) {
	began := sh.status.Since
	sh.status.Phase, sh.status.Since = p, time.Now()
	sh.show()
	log, t, out := sh.cfg.Log, sh.cfg.Times, sh.state.out
	switch p {
	case Delaying:
		log.Info("drain: not ready any more; serving on until that is known", "delay", t.Delay.String(), "grace", t.Grace.String())
	case Ending:
	case Draining:
		log.Info("drain: Envoy tells its clients to go", "window", t.Window.String())
	case Finishing:
		sh.sayEnvoy(time.Since(began))
	case Marking:
		if out.Finish != nil {
			log.Warn("drain: what stands beside Envoy was cut", "error", out.Finish)
		}
	case Over:
		sh.sayOver()
	}
}

func (sh *shell) sayEnvoy(took time.Duration) {
	log, left := sh.cfg.Log, sh.state.out.Left
	switch sh.state.out.Envoy {
	case Idle:
		log.Info("drain: Envoy has no connection left", "took", took.String())
	case Window:
		log.Warn("drain: the window is over, and Envoy still has connections", "connections", left)
	case Gone:
		log.Warn("drain: Envoy is gone; there is nothing to wait for")
	case NotEnding:
		log.Warn("drain: nobody waits for the marker, so only this container is stopping; Envoy isn't drained")
	case Unused:
		log.Info("drain: never ready and nobody connected; there is nothing to drain")
	}
}

func (sh *shell) sayOver() {
	out := sh.state.out
	switch {
	case out.Marker != nil:
		sh.cfg.Log.Error("drain: the marker can't be written; Envoy ends at its waiter's deadline", "error", out.Marker)
	case out.Envoy == NotEnding:
		sh.cfg.Log.Info("drain: over, without a marker")
	default:
		sh.cfg.Log.Info("drain: over; the marker is written", "envoy", out.Envoy)
	}
}

// note looks at an event before it is fed.
func (sh *shell) note(ev event) {
	switch ev := ev.(type) {
	case counted:
		sh.noteCount(ev)
	case told:
		if ev.err != nil && sh.state.phase == Draining {
			sh.cfg.Log.Debug("drain: Envoy can't be asked", "error", ev.err)
		}
	}
}

func (sh *shell) noteCount(c counted) {
	n := c.n
	if c.err != nil {
		sh.cfg.Log.Debug("drain: a count failed, which is not zero", "error", c.err)
		n = unknown
	}
	if n == sh.status.Connections {
		return
	}
	sh.status.Connections = n
	sh.show()
	if time.Since(sh.said) >= sayAgain {
		sh.said = time.Now()
		sh.cfg.Log.Info("drain: connections", "connections", n)
	}
}

func (sh *shell) show() {
	if sh.cfg.Observe != nil {
		sh.cfg.Observe(sh.status)
	}
}
