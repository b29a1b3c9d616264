package hotrestart

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"aether.internal/agent/internal/proxy/envoy"
)

// A handoff for an admin that is only busy would be one that nobody needs.
func TestFact6ASlowAdminIsNotALostOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.sock")
	silent, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l := &lookout{own: &child{admin: envoy.NewAdmin(envoy.Address{Path: path})}}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if !l.hasAdmin(ctx) || l.doubt.Before(time.Now()) {
		t.Error("one that doesn't answer in time is taken for lost")
	}
	silent.Close()
	if l.hasAdmin(t.Context()) {
		t.Error("one that is closed is taken for slow")
	}
}
