package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnOrdinaryUsersPlaces(t *testing.T) {
	const runtime = "/run/user/1000/aether"
	for _, c := range []struct {
		name    string
		euid    int
		runtime string
		there   string // usable directories
		args    string
		state   string
		ready   string
		control string
	}{
		{"root", 0, runtime, "", "",
			defaultStateDir, defaultReadyMarker, defaultControlSocket},
		{"a user without the directories", 1000, runtime, "", "",
			runtime + "/0/state", runtime + "/0/ready", runtime + "/0/control.sock"},
		{"two base-ids don't collide", 1000, runtime, "", "--base-id 7",
			runtime + "/7/state", runtime + "/7/ready", runtime + "/7/control.sock"},
		{"a user of a pod that mounts them", 65532, runtime, "/run/aether/hotrestart /var/run/aether-proxy", "",
			defaultStateDir, defaultReadyMarker, defaultControlSocket},
		{"one of them", 65532, runtime, "/var/run/aether-proxy", "",
			runtime + "/0/state", defaultReadyMarker, defaultControlSocket},
		{"explicit values stay", 1000, runtime, "", "--state-dir /mine --control-socket " + defaultControlSocket,
			"/mine", runtime + "/0/ready", defaultControlSocket},
		{"a user without a runtime directory", 1000, "", "", "",
			defaultStateDir, defaultReadyMarker, defaultControlSocket},
	} {
		w := newWorld()
		var ensured []string
		w.places = places{
			euid: c.euid, runtimeDir: func() string { return c.runtime },
			ensure: func(dir string) error { ensured = append(ensured, dir); return nil },
			usable: func(dir string) bool { return strings.Contains(" "+c.there+" ", " "+dir+" ") },
		}
		if code := w.main(append([]string{"proxy-supervisor"}, strings.Fields(c.args)...)); code != 0 {
			t.Errorf("%s: %s", c.name, w.err.String())
			continue
		}
		if w.ran.StateDir != c.state || w.ran.ReadyMarkerPath != c.ready || w.ran.ControlSocket != c.control {
			t.Errorf("%s: %s %s %s", c.name, w.ran.StateDir, w.ran.ReadyMarkerPath, w.ran.ControlSocket)
		}
		if own := strings.Contains(c.state+c.ready, runtime); own != (len(ensured) == 1) {
			t.Errorf("%s: made %q", c.name, ensured)
		}
		if strings.Contains(c.args, "state-dir") {
			continue // not a flag of proxyctl
		}
		if code := w.main(append([]string{"proxyctl", "status"}, strings.Fields(c.args)...)); code != ExitNoSupervisor || !strings.Contains(w.err.String(), " "+c.control+":") {
			t.Errorf("%s: proxyctl looks elsewhere: %s", c.name, w.err.String())
		}
	}
}

// stranger has no directory but /own, and making that ends in err.
func stranger(err error) places {
	return places{
		euid: 1000, runtimeDir: func() string { return "/own" },
		usable: func(string) bool { return false }, ensure: func(string) error { return err },
	}
}

func TestSomebodyElsesRuntimeDirectoryIsRefused(t *testing.T) {
	w := newWorld()
	w.places = stranger(errors.New("/own belongs to uid 7"))
	if code := w.main([]string{"proxy-supervisor"}); code != 6 || w.ran != nil || w.err.String() != "agent proxy-supervisor: /own belongs to uid 7; it would be in place of /run/aether/hotrestart, which uid 1000 can't write to\n" {
		t.Error(code, w.err.String())
	}
}

// A variable is as explicit as a flag.
func TestAVariableIsNoDefault(t *testing.T) {
	w := newWorld()
	w.places = stranger(nil)
	w.env["AETHER_STATE_DIR"] = "/mine"
	if w.main([]string{"proxy-supervisor"}) != 0 || w.ran.StateDir != "/mine" || w.ran.ReadyMarkerPath != "/own/0/ready" {
		t.Errorf("%+v %s", w.ran, w.err.String())
	}
}

func TestRelativePathsBecomeAbsolute(t *testing.T) {
	w := newWorld()
	t.Chdir(t.TempDir()) // short: sockets below the state directory have to fit
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	w.main([]string{"proxy-supervisor", "--config", "envoy.yaml", "--state-dir", "./s"})
	if w.ran.ConfigPath != filepath.Join(dir, "envoy.yaml") || w.ran.StateDir != filepath.Join(dir, "s") {
		t.Errorf("%+v", w.ran)
	}
}

func TestUsable(t *testing.T) {
	dir := t.TempDir()
	if !usable(dir) || usable(filepath.Join(dir, "missing")) {
		t.Error("usable")
	}
}
