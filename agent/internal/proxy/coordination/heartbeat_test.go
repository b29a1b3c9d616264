package coordination

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestHeartbeatIsReadAsWritten(t *testing.T) {
	dir := t.TempDir()
	if h, ok := ReadHeartbeat(dir); ok {
		t.Errorf("out of nothing: %+v", h)
	}
	for _, h := range []Heartbeat{
		{},
		{Epoch: 4711, Generation: 12, Concurrency: 8, Pod: "aether-proxy-x7k2p"},
		{Epoch: maxCount, Generation: maxCount, Concurrency: maxConcurrency, Pod: strings.Repeat("p", maxPodName)},
	} {
		if err := WriteHeartbeat(dir, h); err != nil {
			t.Fatal(err)
		}
		h.Version = HeartbeatVersion
		if got, ok := ReadHeartbeat(dir); !ok || got != h {
			t.Errorf("%+v, %v; want %+v", got, ok, h)
		}
	}
	if fi, err := os.Stat(filepath.Join(dir, "epoch")); err != nil || fi.Mode() != 0o600 {
		t.Errorf("%v, %v", fi, err)
	}
	wantNames(t, dir, "epoch")
}

func TestGarbageIsNoHeartbeat(t *testing.T) {
	good := `{"version":1,"epoch":5,"generation":1,"concurrency":2}`
	for name, body := range map[string]string{
		"empty":                "",
		"text":                 "5",
		"cut off":              good[:20],
		"more after it":        good + good,
		"another version":      strings.Replace(good, `"version":1`, `"version":2`, 1),
		"no version":           strings.Replace(good, `"version":1,`, ``, 1),
		"negative epoch":       strings.Replace(good, `5`, `-5`, 1),
		"huge epoch":           strings.Replace(good, `5`, `1073741825`, 1),
		"more than an integer": strings.Replace(good, `5`, `99999999999999999999`, 1),
		"fraction":             strings.Replace(good, `5`, `5.5`, 1),
		"negative concurrency": strings.Replace(good, `"concurrency":2`, `"concurrency":-2`, 1),
		"huge concurrency":     strings.Replace(good, `"concurrency":2`, `"concurrency":65537`, 1),
		"long pod":             strings.Replace(good, `}`, fmt.Sprintf(`,"pod":%q}`, strings.Repeat("p", 254)), 1),
		"too long":             good + strings.Repeat(" ", maxHeartbeat),
		"NULs":                 strings.Repeat("\x00", 54),
	} {
		dir := t.TempDir()
		if err := os.WriteFile(heartbeatPath(dir), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if h, ok := ReadHeartbeat(dir); ok {
			t.Errorf("%s: read as %+v", name, h)
		}
	}
	dir := t.TempDir()
	os.WriteFile(heartbeatPath(dir), []byte(good), 0o600)
	if h, ok := ReadHeartbeat(dir); !ok || h.Epoch != 5 {
		t.Errorf("the good one: %+v, %v", h, ok) // or the table proves nothing
	}
}

func TestOnlyAFileIsAHeartbeat(t *testing.T) {
	for name, put := range map[string]func(string) error{
		"directory": func(p string) error { return os.Mkdir(p, 0o700) },
		"FIFO":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"link":      func(p string) error { return os.Symlink("/proc/self/status", p) },
	} {
		dir := t.TempDir()
		if err := put(heartbeatPath(dir)); err != nil {
			t.Fatal(err)
		}
		if h, ok := ReadHeartbeat(dir); ok {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

func TestHeartbeatWriteErrors(t *testing.T) {
	dir := t.TempDir()
	if err := WriteHeartbeat(dir, Heartbeat{Epoch: -1}); err == nil {
		t.Error("epoch -1 was written")
	}
	if err := WriteHeartbeat(filepath.Join(dir, "absent"), Heartbeat{}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	os.Mkdir(heartbeatPath(dir), 0o700)
	if err := WriteHeartbeat(dir, Heartbeat{}); err == nil || !strings.Contains(err.Error(), heartbeatPath(dir)) {
		t.Errorf("over a directory: %v", err)
	}
	wantNames(t, dir, "epoch") // no temporary file is left behind
}

func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("in the directory: %v, want %v", got, want)
	}
}
