package real

import (
	"strings"
	"testing"
)

func TestBadBootstrapAtTheFirstStart(t *testing.T) {
	for _, c := range badBootstraps() {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			c.put(s)
			s.refusedToStart(3, c.says)
		})
	}
}

func TestBadBinaryAtTheFirstStart(t *testing.T) {
	for _, c := range badBinaries() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.dropDirectory(s.EnvoyPath)
			c.put(s)
			s.refusedToStart(4, c.says)
		})
	}
}

func TestBadFlags(t *testing.T) {
	long := "/tmp/" + strings.Repeat("long/", 20)
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"parent-shutdown below drain", []string{"--drain-time", "10s", "--parent-shutdown-time", "9s"}, 2, []string{"--parent-shutdown-time 9s", "longer than --drain-time 10s"}},
		{"parent-shutdown as drain", []string{"--drain-time", "10s", "--parent-shutdown-time", "10s"}, 2, []string{"--parent-shutdown-time 10s", "longer than --drain-time 10s"}},
		{"a sub-second drain time", []string{"--drain-time", "500ms"}, 2, []string{"--drain-time 500ms", "whole seconds"}},
		{"a broken second", []string{"--parent-shutdown-time", "10500ms"}, 2, []string{"--parent-shutdown-time 10.5s", "whole seconds"}},
		{"no time", []string{"--drain-time", "soon"}, 2, []string{"soon", "--drain-time"}},
		{"an Envoy flag given twice", []string{"--", "--log-level", "info"}, 2, []string{`"--log-level" is given twice`}},
		{"an Envoy flag with =", []string{"--", "--service-node=edge"}, 2, []string{"does not accept --service-node=…", "--service-node edge"}},
		{"an Envoy flag that is ours", []string{"--", "--restart-epoch", "1"}, 2, []string{`"--restart-epoch" is not yours to give`}},
		{"an Envoy flag without its value", []string{"--", "--service-node"}, 2, []string{`"--service-node"`, "its value is missing"}},
		{"a base-id that overflows", []string{"--base-id", "214748365"}, 2, []string{"0 to 214748364"}},
		{"a negative base-id", []string{"--base-id", "-1"}, 2, []string{"0 to 214748364"}},
		{"a state directory too long", []string{"--state-dir", long}, 2, []string{"--state-dir", "too long", "107"}},
		{"a control socket too long", []string{"--control-socket", long + "sock"}, 2, []string{"--control-socket", "too long", "107"}},
		{"an unknown flag", []string{"--hurry"}, 2, []string{"--hurry"}},
		{"an unknown word", []string{"--validate", "sometimes"}, 2, []string{"always, changes, never"}},
		{"an admin address that is none", []string{"--admin-address", "localhost"}, 2, []string{"--admin-address"}},
		{"another admin address", []string{"--admin-address", "127.0.0.1:1"}, 3, []string{"its admin address is 127.0.0.1:", "--admin-address says 127.0.0.1:1"}},
		{"a bootstrap's name Envoy can't read by", []string{"--config", "/etc/hostname"}, 3, []string{"must end in .yaml, .yml or .json"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			newStage(t).refusedToStart(c.code, c.says, c.args...)
		})
	}
}

// refusedToStart wants one clear sentence, the code of the table in
// docs/reference.md, and no trace.
func (s *stage) refusedToStart(code int, says []string, args ...string) {
	s.Helper()
	s.launch(args...)
	s.exit(code)
	s.oneSentence(says)
	s.nothingLeft()
}

// oneSentence wants the telling words on one line of stderr, which is the only
// complaint.
func (s *stage) oneSentence(says []string) {
	s.Helper()
	var complaints []string
	for _, l := range s.run.Lines() {
		usageHint := strings.HasPrefix(l.Raw, "Run '")
		if l.Source == "" && !usageHint && (l.Level == "ERROR" || l.Level == "") {
			complaints = append(complaints, l.Raw)
		}
	}
	if len(complaints) != 1 {
		s.Errorf("%d complaints, want one:\n%s", len(complaints), strings.Join(complaints, "\n"))
		return
	}
	text := unquoted(complaints[0])
	for _, want := range says {
		if !strings.Contains(text, want) {
			s.Errorf("the sentence lacks %q: %s", want, text)
		}
	}
	for _, noise := range []string{"goroutine ", "panic", "%!", "<nil>", "bootstrap.1.yaml"} {
		if strings.Contains(text, noise) {
			s.Errorf("the sentence has %q: %s", noise, text)
		}
	}
}

func unquoted(line string) string {
	return strings.NewReplacer(`\"`, `"`, `\u003c`, "<", `\u003e`, ">").Replace(line)
}
