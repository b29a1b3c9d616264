package cmd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aether.internal/agent/internal/install"
)

// image is a directory like the agent's image, with these programs.
func image(t *testing.T, w *world, programs ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("this is "+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.executable = func() (string, error) { return filepath.Join(dir, "agent"), nil }
}

func TestInstallCopiesBothAndExits(t *testing.T) {
	w, volume := newWorld(), t.TempDir()
	image(t, w, "agent", "proxy-ready")
	supervisor, probe := filepath.Join(volume, "supervisor"), filepath.Join(volume, "ready")
	if err := os.WriteFile(probe, []byte("an older one"), 0o600); err != nil {
		t.Fatal(err)
	}
	// Half of these flags collide: an init container has them all from a template.
	code := w.main([]string{"proxy-supervisor", "--install-path", supervisor, "--install-readiness-path", probe,
		"--drain-time", "9s", "--parent-shutdown-time", "9s"})
	if code != 0 || w.err.Len() > 0 || w.ran != nil {
		t.Fatalf("exit code %d, ran %v: %s", code, w.ran, w.err.String())
	}
	for path, want := range map[string]string{supervisor: "this is agent", probe: "this is proxy-ready"} {
		data, err := os.ReadFile(path)
		fi, _ := os.Stat(path)
		if err != nil || string(data) != want || fi.Mode() != 0o755 {
			t.Errorf("%s: %q, mode %v, %v", path, data, fi.Mode(), err)
		}
	}
	wantOnly(t, volume, "ready", "supervisor")
}

func TestAMissingSourceInstallsNothing(t *testing.T) {
	w, volume := newWorld(), t.TempDir()
	image(t, w, "agent")
	code := w.main([]string{"proxy-supervisor", "--install-path", volume + "/a", "--install-readiness-path", volume + "/b"})
	if said := w.err.String(); code != 1 || !strings.Contains(said, "--install-readiness-path: ") || !strings.Contains(said, "proxy-ready: no such file") {
		t.Errorf("exit code %d: %s", code, said)
	}
	wantOnly(t, volume)
}

func TestInstallFailsClearlyAndLeavesWhatWasThere(t *testing.T) {
	volume := t.TempDir()
	for name, c := range map[string]struct{ to, want string }{
		"no such directory": {filepath.Join(volume, "none/agent"), "none"},
		"a directory":       {volume, "is a directory; name the file in it"},
		"below a file":      {"/dev/null/agent", "not a directory"},
	} {
		w := newWorld()
		image(t, w, "agent")
		if code := w.main([]string{"proxy-supervisor", "--install-path", c.to}); code != 1 || !strings.Contains(w.err.String(), c.want) || !strings.Contains(w.err.String(), c.to) {
			t.Errorf("%s: exit code %d, %s", name, code, w.err.String())
		}
	}
	wantOnly(t, volume)
}

// A limit on file sizes fails a write in the middle, like a full volume.
func TestAFailedCopyKeepsTheOldOne(t *testing.T) {
	volume, source := t.TempDir(), filepath.Join(t.TempDir(), "agent")
	target := filepath.Join(volume, "agent")
	if err := os.WriteFile(source, make([]byte, 1<<20), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(target, []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 16, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	err := install.Copy(source, target)
	if restored := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); restored != nil {
		t.Fatal(restored)
	}
	if !errors.Is(err, syscall.EFBIG) {
		t.Errorf("error %v, want one that is EFBIG", err)
	}
	if data, _ := os.ReadFile(target); string(data) != "old" {
		t.Errorf("the old one has now %d bytes", len(data))
	}
	wantOnly(t, volume, "agent")
}

func wantOnly(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s has %q, want %q", dir, got, want)
	}
}
