package real

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"aether.internal/test/node"
)

func TestConfigMapSwap(t *testing.T) {
	s := newStage(t)
	s.configMap("v1")
	s.startPatient()
	s.mixed(500 * time.Millisecond)
	for i := 2; i <= 4; i++ {
		s.configMap(fmt.Sprintf("v%d", i))
		s.awaitTag(fmt.Sprintf("v%d", i))
		s.await("its epoch to be committed", node.Serves(i-1))
	}
	s.configMap("v4") // another directory, the same content
	s.stays(1500*time.Millisecond, "epoch 3 serves", func(st node.Status) bool { return st.Serving == 3 && st.Of(4) == nil })
	s.unharmed()
	s.stop()
	s.nothingLeft()
}

// configMap changes the config directory the way the kubelet does: a new
// directory, and ..data renamed onto it.
func (s *stage) configMap(tag string) {
	s.Helper()
	s.Bootstrap.EpochTag = tag
	text, err := s.Bootstrap.YAML()
	if err != nil {
		s.Fatal(err)
	}
	dir := filepath.Dir(s.ConfigPath)
	fresh, err := os.MkdirTemp(dir, "..2026_")
	if err != nil {
		s.Fatal(err)
	}
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	for _, step := range []error{
		os.WriteFile(filepath.Join(fresh, filepath.Base(s.ConfigPath)), text, 0o644),
		os.Symlink(filepath.Base(fresh), filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")),
	} {
		if step != nil {
			s.Fatal(step)
		}
	}
	if old != "" {
		os.RemoveAll(filepath.Join(dir, old))
		return
	}
	os.Remove(s.ConfigPath)
	if err := os.Symlink(filepath.Join("..data", filepath.Base(s.ConfigPath)), s.ConfigPath); err != nil {
		s.Fatal(err)
	}
}

func TestWhatChangesNothingRestartsNothing(t *testing.T) {
	s := newStage(t)
	s.ownEnvoy()
	s.startPatient()
	s.mixed(500 * time.Millisecond)
	before, err := os.ReadFile(s.ConfigPath)
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range []struct {
		what string
		do   func() error
	}{
		{"the same content in place", func() error { return os.WriteFile(s.ConfigPath, before, 0o644) }},
		{"the same content by rename", func() error { return s.WriteRaw(before) }},
		{"chmod", func() error { return os.Chmod(s.ConfigPath, 0o600) }},
		{"touch", func() error { return os.Chtimes(s.ConfigPath, time.Now(), time.Now()) }},
		{"another file", func() error { return os.WriteFile(s.ConfigPath+".swp", []byte("x"), 0o644) }},
		{"another file's end", func() error { return os.Remove(s.ConfigPath + ".swp") }},
		{"chmod of the binary", func() error { return os.Chmod(s.EnvoyPath, 0o700) }},
		{"the same binary by rename", func() error { return s.ownEnvoy() }},
	} {
		if err := c.do(); err != nil {
			s.Fatal(err)
		}
		// The longest that the watcher waits for two equal looks is a second.
		s.stays(1500*time.Millisecond, c.what, func(st node.Status) bool { return st.Serving == 0 && len(st.Epochs) == 1 })
	}
	s.write("v2")
	s.awaitTag("v2")
	if st := s.await("it to settle", settled); st.Serving != 1 {
		s.Errorf("epoch %d serves, want 1: something restarted before", st.Serving)
	}
	s.unharmed()
	s.stop()
}

// ownEnvoy makes the binary a file of its own instead of a link to the cache.
func (s *stage) ownEnvoy() error {
	s.Helper()
	data, err := os.ReadFile(s.EnvoyPath)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.EnvoyPath+".own", data, 0o755); err != nil {
		return err
	}
	return os.Rename(s.EnvoyPath+".own", s.EnvoyPath)
}

func TestAWatchedBinaryIsSwapped(t *testing.T) {
	s := newStageWith(t, "1.39.3")
	s.startPatient()
	if v := s.status().Of(0).EnvoyVersion; v != "1.39.3" {
		s.Fatalf("epoch 0 is Envoy %s", v)
	}
	s.mixed(time.Second)
	if err := s.InstallEnvoy(s.ctx, "1.40.0"); err != nil {
		s.Fatal(err)
	}
	st := s.await("epoch 1 to serve", node.Serves(1))
	if v := st.Of(1).EnvoyVersion; v != "1.40.0" {
		s.Errorf("epoch 1 is Envoy %s", v)
	}
	s.unharmed()
	s.await("the old binary to be gone", node.Alone(1))
	s.stop()
	s.nothingLeft()
}
