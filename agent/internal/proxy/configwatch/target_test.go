package configwatch

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func TestConfigIsReadUpToALimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config")
	write(t, path, "0123456789")
	for limit, content := range map[int64]string{4: "0123", 10: "0123456789", 99: "0123456789"} {
		if got, err := hashUpTo(t.Context(), path, limit); err != nil || got != hashOf(content) {
			t.Errorf("limit %d: %v, %v", limit, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := hashUpTo(ctx, path, 99); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := hashUpTo(t.Context(), filepath.Dir(path), 99); err == nil {
		t.Error("a directory was read")
	}
}
