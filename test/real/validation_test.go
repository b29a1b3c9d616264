package real

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aether.internal/test/node"
)

// Two that can't talk to each other must not meet (fact 13).
func TestFact13AnotherHotRestartVersionIsRefused(t *testing.T) {
	s := newStage(t)
	s.startPatient()
	s.mixed(time.Second)
	s.wrapEnvoy(`[ "$*" != --hot-restart-version ] || { echo 12.7; exit 0; }`)
	s.logs("restart refused")
	code, out := s.proxyctl("reload", "--wait")
	if code != 1 || !strings.Contains(out, "12.7") || !strings.Contains(out, "11.104") || !strings.Contains(out, "restart the container") {
		s.Errorf("exit code %d: %s", code, out)
	}
	if st := s.status(); st.Serving != 0 || len(st.Epochs) != 1 || !s.markerFresh() {
		s.Errorf("epoch 0 doesn't go on: %+v", st)
	}
	s.unharmed()
	s.stop()
}

// validations counts the validator's runs.
func (s *stage) countValidations() (count func() int) {
	s.Helper()
	file := filepath.Join(s.Dir, "validations")
	s.wrapEnvoy(`case " $* " in *" --mode validate "*) echo >> ` + file + `;; esac`)
	return func() int {
		data, _ := os.ReadFile(file)
		return len(data)
	}
}

func TestRule3WhenABootstrapIsValidated(t *testing.T) {
	for _, c := range []struct {
		when                string
		first, again, fresh int // runs after the start, an equal input, another one
	}{
		{"always", 1, 2, 3},
		{"changes", 1, 1, 2},
		{"never", 0, 0, 0},
	} {
		t.Run(c.when, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			count := s.countValidations()
			want := func(after string, n int) {
				if got := count(); got != n {
					s.Errorf("after %s the validator ran %d times, want %d", after, got, n)
				}
			}
			s.start("--validate", c.when)
			want("the start", c.first)
			s.hup()
			s.await("epoch 1 to serve", node.Serves(1))
			want("a signal", c.again)
			s.write("v2")
			s.await("epoch 2 to serve", node.Serves(2))
			want("a change", c.fresh)
			s.stop()
			s.nothingLeft()
		})
	}
}

// Without validation the newcomer finds out, and leaves the segment's flag set
// (fact 2).
func TestRule1WithoutValidationABadBootstrapIsTakenBack(t *testing.T) {
	s := newStage(t)
	s.startPatient("--validate", "never")
	s.mixed(500 * time.Millisecond)
	if err := s.WriteRaw(s.withUnknownField("v2")); err != nil {
		s.Fatal(err)
	}
	s.logs("newcomer is taken back")
	s.await("epoch 0 to go on", func(st node.Status) bool { return st.Serving == 0 && len(st.Epochs) == 1 && settled(st) })
	s.write("v3")
	s.await("epoch 1 to serve", node.Serves(1))
	s.awaitTag("v3")
	s.unharmed()
	s.stop()
	s.nothingLeft()
}

// withUnknownField is a bootstrap that Envoy refuses.
func (s *stage) withUnknownField(tag string) []byte {
	s.Helper()
	s.Bootstrap.EpochTag = tag
	text, err := s.Bootstrap.YAML()
	if err != nil {
		s.Fatal(err)
	}
	return append(text, "no_such_field: 1\n"...)
}
