package load_test

import (
	"fmt"
	"testing"

	"aether.internal/test/load"
)

// story is what a keep-alive client meets, and how it must be counted.
type story struct {
	name   string
	do     script
	strict bool
	want   load.KindReport // of the counters compared below
}

// serveAll answers every request on the connection.
func serveAll(c *wireConn) {
	for c.request() {
		c.say(hello(""))
	}
}

// firstThen does one thing with the first connection, serves all others.
func firstThen(do func(c *wireConn)) script {
	return func(c *wireConn, n int) {
		if n == 0 {
			do(c)
			return
		}
		serveAll(c)
	}
}

func TestWhatAKeepAliveClientMeets(t *testing.T) {
	t.Parallel()
	told := firstThen(func(c *wireConn) { c.request(); c.say(hello("Connection: close\r\n")) })
	idle := firstThen(func(c *wireConn) { c.request(); c.say(hello("")) })
	unanswered := firstThen(func(c *wireConn) { c.request(); c.say(hello("")); c.request() })
	for _, s := range []story{
		{"a server that behaves", firstThen(serveAll), true, load.KindReport{}},
		{"Connection: close", told, true, load.KindReport{ToldToClose: 1}},
		{"closed after the request was sent", unanswered, false, load.KindReport{Retried: 1}},
		{"the same, and strict", unanswered, true, load.KindReport{Retried: 1, Failed: 1, Strict: 1}},
		{"closed in the middle of the second answer", firstThen(func(c *wireConn) {
			c.request()
			c.say(hello(""))
			c.request()
			c.say("H")
		}), false, load.KindReport{Failed: 1, Cut: 1}},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			compare(t, oneByOne(t, load.KeepAlive, rogue(t, nil, s.do), s.strict, 4), s.want)
		})
	}
	t.Run("closed between requests", func(t *testing.T) {
		t.Parallel()
		k := oneByOne(t, load.KeepAlive, rogue(t, nil, idle), false, 4)
		// The client may see the end before it sends, or after: both honest.
		if k.IdleClosed+k.Retried != 1 || k.Failed != 0 || k.ToldToClose != 0 {
			t.Errorf("want it once, as idle-closed or retried: %+v", k)
		}
	})
}

// The end of an idle connection that has reached us is no retry: nothing had
// been sent.
func TestAnEndSeenInTimeIsNoRetry(t *testing.T) {
	t.Parallel()
	config, certificate := identity(t)
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%t", secure), func(t *testing.T) {
			t.Parallel()
			idleEnd(t, secure, func(do script) load.Target {
				if !secure {
					return targetOf(load.KeepAlive, false, rogue(t, nil, do))
				}
				target := targetOf(load.KeepAlive, true, rogue(t, config, do))
				target.RootCAs = certificate.Pool
				return target
			})
		})
	}
}

// idleEnd closes the first connection after its answer; a rate of two a second
// leaves half a second for the end to arrive.
func idleEnd(t *testing.T, secure bool, serve func(script) load.Target) {
	t.Helper()
	target := serve(func(c *wireConn, n int) {
		if n > 0 {
			serveAll(c)
			return
		}
		c.request()
		c.say(hello(""))
		_ = c.Conn.Close() // with TLS: the alert, then the end
	})
	run := begin(t, load.Plan{Target: target, Strict: true,
		Kinds: []load.KindPlan{{Kind: load.KeepAlive, TLS: secure, Rate: 2, Connections: 1}}})
	until(t, run, "two answers", func(r load.Report) bool { return r.OK()+r.Failures() == 2 })
	compare(t, run.Stop().Kinds[0], load.KindReport{IdleClosed: 1})
}

func compare(t *testing.T, got, want load.KindReport) {
	t.Helper()
	type counters struct{ Failed, Cut, Strict, Told, Idle, Retried int }
	of := func(k load.KindReport) counters {
		return counters{k.Failed, k.Cut, k.Strict, k.ToldToClose, k.IdleClosed, k.Retried}
	}
	if of(got) != of(want) {
		t.Errorf("got %+v, want %+v", of(got), of(want))
	}
	if got.Started != got.OK+got.Failed {
		t.Errorf("started %d, but OK %d and failed %d", got.Started, got.OK, got.Failed)
	}
}
