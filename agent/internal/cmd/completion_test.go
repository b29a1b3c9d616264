package cmd

import (
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/hotrestart"
	"aether.internal/agent/internal/proxy/process"
)

// What a shell asks when somebody presses tab.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		typed string
		want  []string
	}{
		{"proxyctl ", []string{"status", "reload", "upgrade", "drain", "undrain", "history", "doctor", "log"}},
		{"proxyctl status --ou", []string{"--output"}},
		{"proxyctl status -o ", []string{"table", "json"}},
		{"proxyctl log w", []string{"warn"}},
		{"proxy-supervisor --validate ", []string{"always", "changes", "never"}},
		{"completion ", []string{"bash", "zsh", "fish"}},
	} {
		w := newWorld()
		if code := w.main(append([]string{"__complete"}, strings.Split(c.typed, " ")...)); code != 0 {
			t.Errorf("%q: exit code %d: %s", c.typed, code, w.err.String())
		}
		for _, want := range c.want {
			if !strings.Contains("\n"+w.out.String(), "\n"+want) {
				t.Errorf("%q: %s is not offered:\n%s", c.typed, want, w.out.String())
			}
		}
	}
}

// Each script is there; bash's is one that bash can read, and it completes.
func TestCompletionScripts(t *testing.T) {
	for shell, want := range map[string]string{"bash": "complete -o default -F __start_agent agent", "zsh": "#compdef agent", "fish": "complete -c agent"} {
		w := newWorld()
		if code := w.main([]string{"completion", shell}); code != 0 || !strings.Contains(w.out.String(), want) {
			t.Errorf("%s: exit code %d, %s", shell, code, w.err.String())
		}
		if shell != "bash" {
			continue
		}
		script := filepath.Join(t.TempDir(), "agent.bash")
		write(t, script, w.out.String())
		status, err := process.Run(t.Context(), process.Spec{Path: "/bin/bash", Args: []string{"-n", script}})
		if err != nil || status.Code != 0 {
			t.Errorf("bash -n: %v, %v", status, err)
		}
	}
	for _, args := range [][]string{{"completion"}, {"completion", "csh"}, {"completion", "bash", "zsh"}} {
		w := newWorld()
		if code := w.main(args); code != hotrestart.ExitUsage || w.out.Len() > 0 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
