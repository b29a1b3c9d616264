package cmd

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/control"
	"aether.internal/agent/internal/proxy/hotrestart"
)

func TestLogLevelOverTheSocket(t *testing.T) {
	socket := serve(t, &supervisor{})
	for args, want := range map[string]string{"": "info\n", "debug": "debug\n"} {
		w := newWorld()
		code := w.main(append([]string{"proxyctl", "log", "--control-socket", socket}, strings.Fields(args)...))
		if code != 0 || w.out.String() != want {
			t.Errorf("%q: %d %s%s", args, code, w.out.String(), w.err.String())
		}
	}
}

// The level that the control socket sets is the one that the logger obeys.
func TestTheLogLevelChangesAtRunTime(t *testing.T) {
	var out bytes.Buffer
	log, level := newLogger(&out, "text", "warn", false)
	s := hotrestart.New(hotrestart.Config{LogLevel: level}, log, nil)
	set := func(word, now string) {
		t.Helper()
		got, err := s.SetLog(t.Context(), control.LogLevel{Level: word})
		if err != nil || got.Level != now {
			t.Errorf("%q: %q, %v", word, got.Level, err)
		}
	}
	set("", "warn")
	log.Info("one")
	set("debug", "debug")
	log.Debug("two")
	set("error", "error")
	log.Warn("three")
	for text, want := range map[string]bool{"msg=one": false, "from=warn to=debug": true, "msg=two": true, "from=debug to=error": true, "msg=three": false} {
		if strings.Contains(out.String(), text) != want {
			t.Errorf("%q is there: %v\n%s", text, !want, out.String())
		}
	}
	if _, err := s.SetLog(t.Context(), control.LogLevel{Level: "loud"}); err == nil || !strings.Contains(err.Error(), `"loud" is no log level`) {
		t.Error(err)
	}
	if _, err := hotrestart.New(hotrestart.Config{}, slog.Default(), nil).SetLog(t.Context(), control.LogLevel{}); err == nil {
		t.Error("a logger without a level has one")
	}
}
