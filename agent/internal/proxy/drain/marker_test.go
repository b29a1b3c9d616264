package drain

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/drain/wait"
)

func TestMarker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drain-complete")
	m := NewMarker(path)
	if left, err := m.Clear(); left != (Leftovers{}) || err != nil {
		t.Fatal(left, err)
	}
	if err := m.Begin(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a retry changes nothing
		if err := m.Write(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o444 != 0o444 {
			t.Fatal(info, err)
		}
	}
	if left, err := NewMarker(path).Clear(); left != (Leftovers{true, true}) || err != nil {
		t.Errorf("%+v, %v", left, err)
	}
	m.Undone()
	if left, err := NewMarker(path).Clear(); left != (Leftovers{}) || err != nil {
		t.Errorf("%+v, %v", left, err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("it's still there")
	}
	if err := NewMarker(path).Write(); err != nil { // who never cleared
		t.Error(err)
	}
}

func TestMarkerWithoutItsVolume(t *testing.T) {
	m := NewMarker(filepath.Join(t.TempDir(), "gone", "drain-complete"))
	if _, err := m.Clear(); err == nil {
		t.Error("cleared")
	}
	if err := m.Write(); err == nil {
		t.Error("written")
	}
}

// What was reserved in better times takes the marker's place.
func TestMarkerOnAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a full tmpfs needs root to mount")
	}
	dir := t.TempDir()
	// The root, what Clear makes, and one more.
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4k,nr_inodes=4"); err != nil {
		t.Skip("a full tmpfs can't be mounted here: ", err)
	}
	defer syscall.Unmount(dir, 0)
	m := NewMarker(filepath.Join(dir, "drain-complete"))
	if _, err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "hog"), make([]byte, 4096), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewMarker(filepath.Join(dir, "other")).Write(); err == nil {
		t.Fatal("the disk isn't full")
	}
	awaitsAndEnds(t, m) // the waiter needs no room either
}

// awaitsAndEnds has a waiter see the marker, and be seen meanwhile.
func awaitsAndEnds(t *testing.T, m *Marker) {
	t.Helper()
	if m.Awaited() {
		t.Error("by nobody")
	}
	done := make(chan error)
	go func() { done <- wait.For(m.path, time.Minute, func(said string) { t.Error(said) }) }() // joined below
	for !m.Awaited() {
		time.Sleep(time.Millisecond)
	}
	if err := m.Write(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if m.Awaited() { // what a waiter leaves is no waiter
		t.Error("although it has ended")
	}
}

func TestAwaited(t *testing.T) {
	awaitsAndEnds(t, NewMarker(filepath.Join(t.TempDir(), "drain-complete")))
}

// The Envoy container may have mounted the volume read-only.
func TestAwaitedOnAReadOnlyMount(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	dir, view := t.TempDir(), t.TempDir()
	if err := syscall.Mount(dir, view, "", syscall.MS_BIND, ""); err != nil {
		t.Skip("nothing can be mounted here: ", err)
	}
	defer syscall.Unmount(view, 0)
	if err := syscall.Mount("", view, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	m := NewMarker(filepath.Join(dir, "drain-complete"))
	if _, err := m.Clear(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- wait.For(filepath.Join(view, "drain-complete"), time.Minute, func(said string) { t.Error(said) })
	}() // joined below
	for !m.Awaited() {
		time.Sleep(time.Millisecond)
	}
	if err := m.Write(); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
