package cmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/hotrestart"
)

func TestUpgradeTellsWhatCameOfIt(t *testing.T) {
	later := &control.UpgradeStatus{At: time.Now(), From: "1.0", To: "2.0"}
	for _, c := range []struct {
		name string
		s    supervisor
		code int
		want string
	}{
		{"refused", supervisor{upgrade: control.UpgradeResult{Outcome: control.Refused, Error: "format 2"}}, 1, "refused: format 2"},
		{"checked", supervisor{upgrade: control.UpgradeResult{Outcome: control.Unchanged, To: "2.0"}}, 0, "version 2.0 can take over"},
		{"runs", supervisor{
			upgrade: control.UpgradeResult{Outcome: control.Accepted},
			st:      control.Status{Version: "2.0", Upgrades: 4, LastUpgrade: later, Serving: 5},
		}, 0, "version 2.0 runs, in place of 1.0; epoch 5 serves"},
		{"failed", supervisor{
			upgrade: control.UpgradeResult{Outcome: control.Accepted},
			st:      control.Status{Version: "1.0", LastUpgrade: &control.UpgradeStatus{At: later.At, Error: "a child has just ended"}},
		}, 1, "failed, and version 1.0 goes on: a child has just ended"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			w.env["AETHER_CONTROL_SOCKET"] = serve(t, &c.s)
			code := w.main([]string{"proxyctl", "upgrade"})
			if said := w.out.String() + w.err.String(); code != c.code || !strings.Contains(said, c.want) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}

func TestAProgramSaysWhetherItCanTakeOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, []byte(`{"version":0,"program":"0.1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := newWorld()
	w.env[hotrestart.CheckVariable] = strconv.Itoa(int(f.Fd()))
	var answer hotrestart.Takeover
	if code := w.main([]string{"proxy-supervisor"}); code != 0 || w.ran != nil {
		t.Fatalf("exit code %d: %s", code, w.err.String())
	}
	if err := json.Unmarshal(w.out.Bytes(), &answer); err != nil || answer.Takes || !strings.Contains(answer.Error, "the supervisor 0.1 hands its state over in format 0") {
		t.Errorf("%+v, %v", answer, err)
	}
}
