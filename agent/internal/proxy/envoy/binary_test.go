package envoy

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script is an executable that stands in for Envoy.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "envoy")
	write(t, path, "#!/bin/sh\n"+body+"\n", 0o755)
	return path
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	wantNil(t, os.WriteFile(path, []byte(text), mode))
	wantNil(t, os.Chmod(path, mode))
}

func open(t *testing.T, path string) *Binary {
	t.Helper()
	b, err := OpenBinary(path)
	wantNil(t, err)
	t.Cleanup(func() { b.Close() })
	return b
}

const likeEnvoy = `case "$1" in
--version) echo; echo "$0  version: 9e55/1.40.0/Clean/RELEASE/BoringSSL"; echo;;
--hot-restart-version) echo 11.104;;
esac`

func TestBinaryProbe(t *testing.T) {
	b := open(t, script(t, likeEnvoy))
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("#!/bin/sh\n"+likeEnvoy+"\n"))); b.Hash != want {
		t.Errorf("hash %s, want %s", b.Hash, want)
	}
	wantNil(t, b.Probe(t.Context()))
	if b.Version != "1.40.0" || b.HotRestartVersion != KnownHotRestartVersion {
		t.Errorf("%q %q", b.Version, b.HotRestartVersion)
	}
}

func TestBinaryIsProbedOnce(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	b := open(t, script(t, "echo x >>"+ran+"\n"+likeEnvoy))
	for range 3 {
		wantNil(t, b.Probe(t.Context()))
	}
	if got, _ := os.ReadFile(ran); string(got) != "x\nx\n" {
		t.Errorf("run %d times for two versions", len(got)/2)
	}
}

// Rule 3: what is run is what was opened, whatever the path names by now.
func TestRule3ASwapOfTheBinaryChangesNothing(t *testing.T) {
	path := script(t, likeEnvoy)
	b := open(t, path)
	wantNil(t, os.Remove(path))
	write(t, path, "#!/bin/sh\necho swapped\n", 0o755)
	wantNil(t, b.Probe(t.Context()))
	if b.Version != "1.40.0" || b.Same(path) {
		t.Errorf("version %q, same %v", b.Version, b.Same(path))
	}
}

func TestBinarySameSeesEachKindOfChange(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"nothing": nil,
		"rewrite": func(p string) error { return os.WriteFile(p, []byte("#!/bin/sh\n# longer\n"), 0o755) },
		"touch":   func(p string) error { return os.Chtimes(p, time.Now(), time.Now().Add(-time.Hour)) },
		"same time, other bytes": func(p string) error {
			info, err := os.Stat(p)
			if err != nil {
				return err
			}
			old, _ := os.ReadFile(p)
			if err := os.WriteFile(p, []byte(strings.Repeat("#", len(old))), 0o755); err != nil {
				return err
			}
			return os.Chtimes(p, info.ModTime(), info.ModTime())
		},
		"removed": os.Remove,
		"replaced by a copy": func(p string) error {
			old, _ := os.ReadFile(p)
			if err := os.WriteFile(p+".new", old, 0o755); err != nil {
				return err
			}
			return os.Rename(p+".new", p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := script(t, "exit 0")
			b := open(t, path)
			if change != nil {
				nextTick(t, path)
				wantNil(t, change(path))
			}
			if b.Same(path) != (change == nil) {
				t.Errorf("same: %v", b.Same(path))
			}
		})
	}
}

// nextTick waits until the kernel gives a file a later time than path's: its
// clock for files ticks every few milliseconds.
func nextTick(t *testing.T, path string) {
	t.Helper()
	before, err := os.Stat(path)
	wantNil(t, err)
	probe := filepath.Join(t.TempDir(), "clock")
	eventually(t, "a tick of the file clock", func() bool {
		write(t, probe, "x", 0o600)
		now, err := os.Stat(probe)
		return err == nil && now.ModTime().After(before.ModTime())
	})
}

func TestBinaryRefusesWithTheReason(t *testing.T) {
	dir := t.TempDir()
	file := func(name, body string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		write(t, path, body, mode)
		return path
	}
	wantNil(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o755))
	wantNil(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	for path, words := range map[string][]string{
		filepath.Join(dir, "missing"):                 {"no such file"},
		filepath.Join(dir, "dangling"):                {"no such file"},
		dir:                                           {"a directory"},
		filepath.Join(dir, "fifo"):                    {"a FIFO"},
		"/dev/null":                                   {"a device"},
		file("plain", "#!/bin/sh\n", 0o644):           {"not executable"},
		file("empty", "", 0o755):                      {"neither an ELF program nor a script"},
		file("text", "hello, this is text\n", 0o755):  {"neither an ELF program nor a script"},
		file("arm", elf(1, foreign()), 0o755):         {"is built for", machines[foreign()], "this machine is " + runtime.GOARCH},
		file("big-endian", elf(2, 22), 0o755):         {"is built for s390x"},
		file("exotic", elf(1, 9999), 0o755):           {"ELF machine 9999", runtime.GOARCH},
		file("half a header", elf(1, 62)[:18], 0o755): {"neither an ELF program nor a script"},
	} {
		_, err := OpenBinary(path)
		if err == nil {
			t.Errorf("%s was taken", path)
			continue
		}
		wantError(t, err, append(words, "envoy binary", path)...)
	}
}

// elf is the start of a program: data 1 is little, 2 big endian.
func elf(data byte, machine uint16) string {
	head := append([]byte("\x7fELF\x02"), data)
	head = append(head, make([]byte, 12)...)
	if data == 2 {
		return string(binary.BigEndian.AppendUint16(head, machine))
	}
	return string(binary.LittleEndian.AppendUint16(head, machine))
}

func foreign() uint16 {
	if runtime.GOARCH == "arm64" {
		return 62
	}
	return 183
}

func TestProbeSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ body, word string }{
		"another program":     {"echo GNU bash, version 5", "is this Envoy?"},
		"prints nothing":      {"exit 0", "printed nothing"},
		"fails":               {"echo cannot open libfoo >&2; exit 127", "exit code 127: cannot open libfoo"},
		"crashes":             {"kill -SEGV $$", "SIGSEGV"},
		"no restart version":  {`[ "$1" = --version ] && echo "x version: a/1.2.3/b"`, "--hot-restart-version"},
		"interpreter missing": {"", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := script(t, c.body)
			if name == "interpreter missing" {
				write(t, path, "#!/nonexistent/sh\n", 0o755)
			}
			b := open(t, path)
			err := b.Probe(t.Context())
			wantError(t, err, c.word, "envoy binary "+path)
			if b.Version+b.HotRestartVersion != "" {
				t.Error("a failed probe has left a version")
			}
		})
	}
}

// The limit of 5 s is judged where it is used: a shorter one of the caller.
func TestProbeKillsABinaryThatHangs(t *testing.T) {
	b := open(t, script(t, "exec sleep 60"))
	ctx, cancel := withTimeout(t, 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	err := b.Probe(ctx)
	wantError(t, err, "--version", "envoy binary")
	if !errors.Is(err, ctx.Err()) || time.Since(began) > 3*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}
