package real

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestTheControlSocketsPlaceIsTaken(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(path string) error
		says string
	}{
		{"by a file", func(p string) error { return os.WriteFile(p, []byte("mine"), 0o600) }, "a regular file"},
		{"by a directory", func(p string) error { return os.Mkdir(p, 0o700) }, "a directory"},
		{"by a link", func(p string) error { return os.Symlink("nowhere", p) }, "a symbolic link"},
		{"by a FIFO", func(p string) error { return syscall.Mkfifo(p, 0o600) }, "a named pipe"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.must(c.put(s.Control))
			s.launch()
			s.exit(2) // nobody serves there: it is the flag that is wrong
			s.oneSentence([]string{"control socket " + s.Control, c.says, "choose another --control-socket"})
			if len(exists(s.Control)) == 0 {
				s.Error("what was there is gone")
			}
			s.leftOnly(s.Control)
		})
	}
}

// A dead supervisor's socket is no obstacle.
func TestADeadControlSocketIsReplaced(t *testing.T) {
	s := newStage(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Control, Net: "unix"})
	s.must(err)
	l.SetUnlinkOnClose(false)
	l.Close()
	s.start()
	s.stop()
	s.nothingLeft()
}

// Somebody else on our base-id is named and never touched; whose it is shows in
// the seats' locks and in who answers at which name.
func TestAnotherOneOnOurBaseID(t *testing.T) {
	for _, c := range []struct {
		name   string
		other  func(s *stage)
		args   []string
		says   []string
		leaves []string // the other one's
	}{
		{"a supervisor with its own state directory", func(s *stage) { s.start() },
			[]string{"--state-dir", "OWN/s", "--control-socket", "OWN/c", "--ready-marker", "OWN/r"},
			[]string{"is held by an Envoy of another state directory", "choose another --base-id"}, nil},
		{"a supervisor with our control socket", func(s *stage) { s.start() },
			[]string{"--base-id", "NEXT", "--state-dir", "OWN/s", "--ready-marker", "OWN/r"},
			[]string{"control socket", "taken", "held by another supervisor"}, nil},
		{"an Envoy at the abstract names", func(s *stage) { s.foreignEnvoy() },
			nil, []string{"an Envoy that is not ours answers at the abstract socket envoy_domain_socket_child_"}, []string{"envoy_"}},
		{"an Envoy that can't hand over", func(s *stage) { s.foreignEnvoy("--disable-hot-restart") },
			nil, []string{"that isn't coordinated with us answers at the admin address"}, nil},
		{"an Envoy at our own names", func(s *stage) {
			s.must(os.MkdirAll(filepath.Join(s.StateDir, "seat.0"), 0o700))
			s.must(os.Chmod(s.StateDir, 0o700))
			s.foreignEnvoy("--socket-path", filepath.Join(s.StateDir, "seat.0", "hr"), "--socket-mode", "600")
		}, nil, []string{"an Envoy that is not ours answers at"}, []string{"envoy_", "seat.0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			c.other(s)
			before := s.remains()
			own, err := os.MkdirTemp("", "ao") // short: sockets lie in it
			s.must(err)
			defer os.RemoveAll(own)
			second := &stage{T: t, Node: s.Node, ctx: s.ctx}
			for i, a := range c.args {
				c.args[i] = strings.NewReplacer("OWN", own, "NEXT", strconv.Itoa(int(s.BaseID)+1)).Replace(a)
			}
			second.launch(c.args...)
			defer second.run.Kill()
			second.exit(6)
			second.oneSentence(c.says)
			if after := s.remains(); !slices.Equal(keepFiles(before), keepFiles(after)) {
				s.Errorf("before:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if got := s.tag(); got != "v1" {
				s.Errorf("the other one doesn't serve any more: %s", got)
			}
			if s.run != nil {
				s.stop()
				s.nothingLeft()
			}
		})
	}
}

// keepFiles leaves out what may change: the kernel's socket table has
// connections in it.
func keepFiles(found []string) []string {
	return slices.DeleteFunc(slices.Clone(found), func(f string) bool { return strings.HasPrefix(f, "socket ") })
}

// foreignEnvoy starts an Envoy by hand with our base-id and our bootstrap.
func (s *stage) foreignEnvoy(args ...string) {
	s.Helper()
	args = append([]string{"-c", s.ConfigPath, "--base-id", strconv.Itoa(int(s.BaseID)), "-l", "off", "--concurrency", "1"}, args...)
	cmd := exec.Command(s.EnvoyPath, args...)
	s.must(cmd.Start())
	s.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	s.until("the foreign Envoy to serve", func() bool { return s.tag() == "v1" })
}
