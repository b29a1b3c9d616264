package marker

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aether.internal/agent/internal/proxy/coordination/marker/fresh"
)

// A marker is fresh while its writer holds it, whatever is in it and whatever it
// is called; what isn't a marker is refused, left alone and never waited for.
func FuzzMarker(f *testing.F) {
	f.Add("ready", []byte("ready\n"))
	f.Add("..data", []byte{})
	f.Add("*", bytes.Repeat([]byte{0}, 100))
	f.Add("", []byte("x"))
	f.Add("a/b", []byte("x"))
	f.Add("\x00", []byte("x"))
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		path := filepath.Join(root, name)
		if strings.Contains(name, "/") || path == root || path == filepath.Dir(root) {
			if Fresh(path) == nil {
				t.Errorf("%q is a marker", name)
			}
			return
		}
		if os.WriteFile(path, content, 0o600) != nil { // no name for a file
			if Fresh(path) == nil {
				t.Errorf("%q can't be written and is fresh", name)
			}
			return
		}
		defer os.Remove(path)
		if err := Fresh(path); !errors.Is(err, fresh.ErrStale) {
			t.Errorf("a file that nobody holds: %v", err)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, content) {
			t.Errorf("a look changed it: %q, %v", now, err)
		}
		m := New(path)
		if err := m.Publish(); err != nil {
			if len(name) < 200 { // its temporary name is longer
				t.Error(err)
			}
			return
		}
		if err := Fresh(path); err != nil {
			t.Errorf("published: %v", err)
		}
		if err := New(path).Publish(); !errors.Is(err, ErrHeld) {
			t.Errorf("published twice: %v", err)
		}
		if err := m.Withdraw(); err != nil {
			t.Error(err)
		}
		if entries, err := os.ReadDir(root); len(entries) > 0 || err != nil {
			t.Errorf("left behind: %v, %v", entries, err)
		}
	})
}
