package configwatch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestRenameIsToldAtOnce(t *testing.T) {
	l := onDisk(t, swapsOnly, nil)
	for n := range 5 {
		l.write("tmp", fmt.Sprint("v2.", n)) // same tick of the kernel's clock as the rename
		l.rename("tmp", "config")
		l.wantTold(Change{Config: true})
	}
	l.write("tmp", "v2.4")
	l.rename("tmp", "config")
	l.wantQuiet()
}

func TestRenameFromAnotherDirectoryIsToldAtOnce(t *testing.T) {
	l := onDisk(t, swapsOnly, nil)
	elsewhere := filepath.Join(t.TempDir(), "tmp")
	write(t, elsewhere, "v2")
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(elsewhere, old, old); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(elsewhere, l.path("config")); err != nil {
		t.Fatal(err)
	}
	l.wantTold(Change{Config: true})
}

// configMap makes dir what the kubelet makes of a ConfigMap; swap is its update.
func configMap(t *testing.T, dir, version, content string) {
	t.Helper()
	swap(t, dir, version, content)
	if err := os.Symlink("..data/config", filepath.Join(dir, "config")); err != nil {
		t.Fatal(err)
	}
}

func swap(t *testing.T, dir, version, content string) {
	t.Helper()
	old, _ := os.Readlink(filepath.Join(dir, "..data"))
	err := os.Mkdir(filepath.Join(dir, version), 0o755)
	write(t, filepath.Join(dir, version, "config"), content)
	err = errors.Join(err,
		os.Symlink(version, filepath.Join(dir, "..data_tmp")),
		os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	if old != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, old)))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigMapSwapIsToldAtOnce(t *testing.T) {
	l := onDisk(t, swapsOnly, func(dir string) { configMap(t, dir, "..2026_1", "v1") })
	swap(t, l.dir, "..2026_2", "v2")
	l.wantTold(Change{Config: true})
	swap(t, l.dir, "..2026_3", "v2") // the same content: another key of the map changed
	l.wantQuiet()
	swap(t, l.dir, "..2026_4", "v3")
	l.wantTold(Change{Config: true})
}

func TestLinkToAnotherDirectory(t *testing.T) {
	releases := t.TempDir()
	write(t, filepath.Join(releases, "v1"), "v1")
	l := onDisk(t, settling, func(dir string) { os.Symlink(filepath.Join(releases, "v1"), filepath.Join(dir, "config")) })
	write(t, filepath.Join(releases, "v1"), "v2") // behind the link
	l.wantTold(Change{Config: true})
	write(t, filepath.Join(releases, "tmp"), "v3")
	os.Rename(filepath.Join(releases, "tmp"), filepath.Join(releases, "v1"))
	l.wantTold(Change{Config: true})
}

func TestWriteInPlaceIsTold(t *testing.T) {
	l := onDisk(t, settling, nil)
	l.write("config", "v2")
	l.wantTold(Change{Config: true})
	os.Remove(l.path("binary"))
	l.write("binary", "b2") // as cp does
	l.wantTold(Change{Binary: true})
	l.wantQuiet()
}

func TestWritesEvery50msAreToldWhileTheyGoOn(t *testing.T) {
	l := onDisk(t, settling, nil)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	wrote := 0
	for limit := time.Now().Add(deadline); len(l.told) == 0; wrote++ {
		l.write("config", fmt.Sprint("v", wrote))
		if <-tick.C; time.Now().After(limit) {
			t.Fatal("nothing told while writes go on")
		}
	}
	t.Logf("told after %d writes", wrote)
	<-l.told
	l.write("config", "the last one")
	l.wantTold(Change{Config: true})
}

func TestWhatIsNoChangeOnDisk(t *testing.T) {
	l := onDisk(t, Options{Poll: never, Settle: time.Millisecond}, nil)
	act := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		l.wantQuiet()
	}
	act(os.Chmod(l.path("config"), 0o600))
	act(os.Chtimes(l.path("config"), t0, t0))
	act(os.WriteFile(l.path("other"), []byte("x"), 0o600))
	act(os.Remove(l.path("other")))
	act(errors.Join(os.Link(l.path("config"), l.path("link")), os.Rename(l.path("link"), l.path("config"))))
}

func TestDirectoryDeletedAndRecreated(t *testing.T) {
	inner := filepath.Join(t.TempDir(), "a", "b")
	l := onDisk(t, settling, func(dir string) {
		os.MkdirAll(inner, 0o755)
		write(t, filepath.Join(inner, "config"), "v1")
		os.Symlink(filepath.Join(inner, "config"), filepath.Join(dir, "config"))
	})
	for n, away := range []func() error{
		func() error { return os.RemoveAll(inner) },
		func() error { return os.RemoveAll(filepath.Dir(inner)) },
		func() error { return os.Rename(inner, inner+".old") },
	} {
		if err := errors.Join(away(), os.MkdirAll(inner, 0o755)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(inner, "config"), fmt.Sprint("recreated ", n))
		l.wantTold(Change{Config: true})
		write(t, filepath.Join(inner, "config"), fmt.Sprint("written ", n)) // the new one is watched
		l.wantTold(Change{Config: true})
	}
}
