package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/process"
)

// beAgent makes this test binary the agent.
const beAgent = "TEST_BE_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(beAgent) != "" {
		main()
	}
	process.Main(m.Run)
}

// agent runs the agent as a process of its own: its exit code and all it said.
func agent(t *testing.T, args ...string) (int, string) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	said := make(chan string)
	go func() { // reader, joined below
		data, _ := io.ReadAll(r)
		said <- string(data)
	}()
	st, err := process.Run(t.Context(), process.Spec{
		Path: os.Args[0], Args: args, Stdout: w, Stderr: w, Env: append(os.Environ(), beAgent+"=1"),
	})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return st.Code, <-said
}

func TestTheBinary(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"version"}, 0, "agent devel, go1."},
		{[]string{"proxyctl", "status", "--control-socket", filepath.Join(dir, "c")}, 7, "no supervisor answers"},
		{[]string{"proxy-supervisor", "--drain-time", "9s", "--parent-shutdown-time", "9s"}, 2, "must be longer than --drain-time 9s"},
	} {
		if code, said := agent(t, c.args...); code != c.code || !strings.Contains(said, c.want) {
			t.Errorf("agent %s: exit code %d\n%s", strings.Join(c.args, " "), code, said)
		}
	}
}
