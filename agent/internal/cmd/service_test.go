package cmd

import (
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/control"
)

func TestDrainAndUndrain(t *testing.T) {
	for _, c := range []struct {
		args     string
		sup      supervisor
		code     int
		out, err string
	}{
		{args: "drain", sup: supervisor{drain: control.DrainResult{Epoch: 3, Told: true}},
			out: "drained: epoch 3 is not ready, and asks its clients to go elsewhere\n"},
		{args: "undrain", sup: supervisor{drain: control.DrainResult{Epoch: 3, Told: true}}, out: "undrained: epoch 3 is ready\n"},
		{args: "drain", sup: supervisor{drain: control.DrainResult{Epoch: control.None}}, out: "no epoch serves yet; the first one will be told (drained: true)\n"},
		{args: "drain", sup: supervisor{drain: control.DrainResult{Epoch: 3}}, code: 1, err: "could not be told about its health checks"},
	} {
		w := newWorld()
		code := w.main([]string{"proxyctl", c.args, "--control-socket", serve(t, &c.sup)})
		if code != c.code || w.out.String() != c.out || !strings.Contains(w.err.String(), c.err) {
			t.Errorf("%s: %d\n%s%s", c.args, code, w.out.String(), w.err.String())
		}
	}
}

// doctor's exit code is 1 when there is something to do.
func TestDoctorOverTheSocket(t *testing.T) {
	healthy := control.Diagnosis{Findings: diagnosis.Findings[:1]}
	for _, c := range []struct {
		d    control.Diagnosis
		args string
		code int
		want string
	}{
		{healthy, "", 0, "ok     base-id: nobody else"}, {diagnosis, "", 1, "to do  config mount: /etc/"},
		{healthy, "-o json", 0, `"ok": true`}, {diagnosis, "-o json", 1, `"do": "mount its directory`},
	} {
		w := newWorld()
		args := append([]string{"proxyctl", "doctor", "--control-socket", serve(t, &supervisor{diagnosis: c.d})}, strings.Fields(c.args)...)
		if code := w.main(args); code != c.code || !strings.Contains(w.out.String(), c.want) || w.err.Len() > 0 {
			t.Errorf("%q: %d\n%s%s", c.args, code, w.out.String(), w.err.String())
		}
	}
}

func TestHistoryOverTheSocket(t *testing.T) {
	socket := serve(t, &supervisor{history: histories["all"]})
	for args, want := range map[string]string{"": "handoff deadline: LIVE, but not verified", "-o json": `"outcome": "refused"`} {
		w := newWorld()
		code := w.main(append([]string{"proxyctl", "history", "--control-socket", socket}, strings.Fields(args)...))
		if code != 0 || !strings.Contains(w.out.String(), want) {
			t.Errorf("%q: %d\n%s%s", args, code, w.out.String(), w.err.String())
		}
	}
}
