package coordination

import (
	"path/filepath"
	"testing"
)

func TestMarkerOfThisPackage(t *testing.T) {
	m := NewMarker(filepath.Join(t.TempDir(), "ready"))
	if err := m.Publish(); err != nil {
		t.Fatal(err)
	}
	defer m.Withdraw()
	if err := MarkerFresh(filepath.Join(t.TempDir(), "ready")); err == nil {
		t.Error("an absent marker is fresh")
	}
}
