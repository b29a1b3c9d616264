package main

import (
	"time"

	"aether.internal/test/node"
)

// sight is what can be seen of the node at one moment.
type sight struct {
	at     time.Time
	status node.Status // the last one had
	tag    string      // of the serving epoch's bootstrap
	log    tally
	rate   float64 // operations a second, over the last second
	failed int
	done   int // operations that succeeded

	loadEnded bool
	ended     bool // the supervisor has
	code      int  // and this is its exit code
}

// tally counts lines of the supervisor's log: the only trace of what it
// decided not to do.
type tally struct{ refused, takenBack, unchanged int }

// serves wants an epoch with this bootstrap, and with this version of Envoy
// if one is named, to serve.
func serves(tag, version string) func(before, now sight) bool {
	return func(_, now sight) bool {
		e := now.status.Of(now.status.Serving)
		return e != nil && now.status.Ready && now.tag == tag && (version == "" || e.EnvoyVersion == version)
	}
}

// another wants, besides, that it isn't the epoch that served before.
func another(of func(before, now sight) bool) func(before, now sight) bool {
	return func(before, now sight) bool {
		return of(before, now) && now.status.Serving > before.status.Serving
	}
}

// refused wants the newest input refused in this step, and the epoch that
// served to serve on.
func refused(step string) func(before, now sight) bool {
	return func(before, now sight) bool {
		f := now.status.LastFailure
		return now.log.refused > before.log.refused && f != nil && f.Step == step && goesOn(before, now)
	}
}

// takenBack wants a newcomer gone, and a new epoch of the last good bootstrap.
func takenBack(good string) func(before, now sight) bool {
	healed := another(serves(good, ""))
	return func(before, now sight) bool { return now.log.takenBack > before.log.takenBack && healed(before, now) }
}

// unchanged wants the supervisor to see that there is nothing to do.
func unchanged(before, now sight) bool {
	return now.log.unchanged > before.log.unchanged && goesOn(before, now)
}

func goesOn(before, now sight) bool {
	return now.status.Serving == before.status.Serving && now.status.Ready
}

func answers(_, now sight) bool { return now.done > 0 }
